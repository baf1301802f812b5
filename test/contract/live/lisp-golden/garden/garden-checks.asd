(defsystem "garden-checks" :perform (test-op (o c) (format t "weeded~%")))
(defsystem "garden-checks/frost" :perform (test-op (o c) (error "The rose froze")))
