"""Tools that change something: what they act through, what they look at before and after, how a lost reply is settled."""
