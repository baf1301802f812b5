;;;; What the system garden depends on, with a version.

(defsystem "garden-tools" :version "0.2.0")
