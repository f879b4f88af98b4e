SECTION = ("experiments", "Lab")  # in the navigation
