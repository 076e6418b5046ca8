"""Approvals: what is asked, how an answer is stored, and what the graph resumes with."""
