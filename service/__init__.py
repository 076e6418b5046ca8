"""Many runs at once: an HTTP API that accepts them and answers at once, and workers on any host that take them."""
