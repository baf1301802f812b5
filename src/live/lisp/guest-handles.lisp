;;;; Handles: numbers by which a client can look into a value that was not printed whole (tools-inspect.lisp). The table
;;;; keeps the newest ones. Separate because values, frames and the inspector all give handles.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +max-handles+ 200 "Values that are kept.")

(defshared *handles* (make-array +max-handles+ :initial-element '%dropped) "Values by their handle, modulo its length.")
(defshared *last-handle* 0 "The newest handle.")

(defun handle-cell (handle) (svref *handles* (mod handle +max-handles+)))

(defun oldest-handle () (max 1 (- *last-handle* +max-handles+ -1)))

(defun handle-of (value)
  "The handle of VALUE, a new one if it has none."
  (loop for handle from *last-handle* downto (oldest-handle)
        when (eq value (handle-cell handle)) return handle
        finally (setf (svref *handles* (mod (incf *last-handle*) +max-handles+)) value)
                (return *last-handle*)))

(defun handle-value (handle)
  "The value of HANDLE, and whether there is one."
  (let ((value (if (<= (oldest-handle) handle *last-handle*) (handle-cell handle) '%dropped)))
    (if (eq value '%dropped) (values nil nil) (values value t))))

(defun drop-handles () (fill *handles* '%dropped))

(defun delimiter-at-p (text at)
  (or (>= at (length text)) (find (char text at) '(#\) #\Space #\Newline #\>))))

(defun whole-text-p (text)
  "Whether a printed TEXT shows all of its value: no #<...>, no ... for further elements, no # for a deeper level."
  (let ((at 0) (end (length text)))
    (loop while (< at end)
          do (let ((char (char text at)))
               (case char
                 (#\\ (incf at))
                 ((#\" #\|) (setf at (or (loop for i from (1+ at) below end
                                               do (case (char text i)
                                                    (#\\ (incf i))
                                                    (t (when (char= (char text i) char) (return i)))))
                                         end)))
                 (#\# (let ((next (and (< (1+ at) end) (char text (1+ at)))))
                        (cond ((or (delimiter-at-p text (1+ at)) (char= next #\<)) (return-from whole-text-p nil))
                              ((char= next #\\) (incf at 2))
                              ;; A label such as #1=, or a reference to it, such as #1#.
                              ((digit-char-p next)
                               (setf at (or (position-if-not #'digit-char-p text :start (1+ at)) end))))))
                 (#\. (when (and (eql (mismatch "..." text :start2 at) 3) (delimiter-at-p text (+ at 3)))
                        (return-from whole-text-p nil))))
               (incf at)))
    t))

(defun handle-for (value text cut)
  "A handle for VALUE if TEXT does not show all of it, else nil. CUT: the text was cut."
  (when (or cut
            (typecase value
              ((or number character symbol string pathname) nil)
              ((or standard-object function hash-table package condition stream) t)
              (t (not (whole-text-p text)))))
    (handle-of value)))
