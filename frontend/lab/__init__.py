SECTIONS = (("experiments", "Lab"),)  # in the navigation
