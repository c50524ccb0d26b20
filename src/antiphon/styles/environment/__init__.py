"""Environment: roles that publish messages and watch for those of others, round by round."""
