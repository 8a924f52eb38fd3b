//! The Upstash REST protocol in front of a real Redis or Valkey.
