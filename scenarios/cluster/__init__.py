"""Generated Kubernetes clusters with a known faulty object, an innocent look-alike, or nothing wrong."""
