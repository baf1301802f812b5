;;;; What the system garden depends on; it has nothing to load.

(defsystem "garden-soil" :depends-on ("garden-water"))
