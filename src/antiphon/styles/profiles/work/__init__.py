"""Work modules and who works on them: dispatch, launch, handover."""
