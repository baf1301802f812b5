(defsystem "garden-unread" :components ((:file "unread")))
