;;;; Compiles with a warning.

(defun weeds ()
  (+ 1 "a"))
