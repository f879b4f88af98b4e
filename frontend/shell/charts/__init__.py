"""The charts of all pages: axes, marks, rulers of changes, and Plotly figures.

What the server draws is SVG without a viewBox, so that it stretches with the page while its text and strokes do not:
x is in percent of the plot, y in pixels, colours are the stylesheet's. Plotly's figures get the theme's colours from
`charts.js`.
"""
