;;;; A system that fails while it loads.

(defsystem "garden-broken" :components ((:file "broken")))
