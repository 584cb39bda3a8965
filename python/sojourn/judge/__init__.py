"""The judge of queue disciplines: which decisions of an implementation an RFC permits."""
