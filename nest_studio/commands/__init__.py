"""The commands of ``nest-studio``, one module each."""
