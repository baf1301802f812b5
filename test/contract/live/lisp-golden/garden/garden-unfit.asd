(defsystem "garden-unfit" :components ((:file "unfit")))
