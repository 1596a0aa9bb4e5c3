"""napari plugin: nuclei with their names, and a list of the uncertain ones to check and pin."""
