"""Any description of a model -> `kvcore.model.Model`."""
