;;;; What the system garden depends on through another.

(defsystem "garden-water")
