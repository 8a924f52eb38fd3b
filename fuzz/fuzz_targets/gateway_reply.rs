#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| edgefront_fuzz::gateway_reply(data));
