"""The records: fields, Model, Data, their static structure, names and descriptions."""
