"""The loop (`build.py`) and the life of a run around it (`session.py`)."""
