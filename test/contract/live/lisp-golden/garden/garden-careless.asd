;;;; A system whose only file compiles with a warning that ASDF takes for a failure.

(defsystem "garden-careless" :components ((:file "weeds")))
