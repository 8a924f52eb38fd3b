"""The site: settings, addresses and application."""
