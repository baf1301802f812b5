;; The compiler refuses the second form.
(defun rake () 1)

(defun hoe (bed)
  (let ((row 1 2)) (list bed row)))
