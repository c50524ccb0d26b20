"""Commands that serve over HTTP, and the browser that is opened on them."""
