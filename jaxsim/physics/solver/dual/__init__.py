"""The dual problem: forces as unknowns, one row or one contact after another."""
