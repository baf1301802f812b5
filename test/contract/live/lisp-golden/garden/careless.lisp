;;;; Loads, with warnings and output.

(defun mind (x)
  (list x *no-such-variable*))

(defun careless (x)
  (list (mind x)))

(warn "Mind the step.")
(print :loaded)
