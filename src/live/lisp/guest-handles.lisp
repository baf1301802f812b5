;;;; Handles: numbers by which a client can look into a value that was not printed whole (tools-inspect.lisp). Small values
;;;; are kept within a budget of octets, the oldest dropped first; others as long as something else holds them, such as a
;;;; variable. Separate because values, frames and the inspector all give handles.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +max-handles+ 200 "Handles that are known.")
(defconstant +max-handle-octets+ 4000000 "What values may take that only handles keep.")
(defconstant +max-handle-parts+ 20000 "A value with more parts is too large.")

(defshared *handles* (make-array +max-handles+ :initial-element nil) "Weak pointers to values by their handle, modulo its length.")
(defshared *kept-values* '() "Lists of a handle, its value and the octets that it takes, the newest first.")
(defshared *last-handle* 0 "The newest handle.")
(defshared *no-handles* nil "Whether nothing gets a handle: in code mode no tool takes one.")

(defun octets-of (value)
  "About how many octets VALUE takes; nil if they are more than handles keep, or cannot be counted quickly."
  (let ((seen (make-hash-table :test 'eq)) (open (list value)) (octets 0) (parts 0))
    (flet ((add (part) (unless (typep part '(or fixnum character symbol package class)) (push part open))))
      (loop while open
            do (let ((part (pop open)))
                 (unless (gethash part seen)
                   (setf (gethash part seen) t)
                   (incf parts)
                   (incf octets (if (consp part) 16 (sb-ext:primitive-object-size part)))
                   (when (or (> parts +max-handle-parts+) (> octets +max-handle-octets+)) (return-from octets-of nil))
                   (typecase part
                     (cons (add (car part)) (add (cdr part)))
                     ((or string number (simple-array * (*)))
                      (when (simple-vector-p part) (loop for item across part do (add item))))
                     (array (sb-kernel:with-array-data ((data part) (start) (end)) (declare (ignore start end)) (add data)))
                     (hash-table (maphash (lambda (key item) (add key) (add item)) part))
                     ;; What others hold is not known.
                     (t (return-from octets-of nil)))))))
    octets))

(defun oldest-handle () (max 1 (- *last-handle* +max-handles+ -1)))

(defun keep-within-budget ()
  (let ((left +max-handle-octets+))
    (setf *kept-values* (loop for kept in *kept-values*
                              while (and (>= (first kept) (oldest-handle)) (not (minusp (decf left (third kept)))))
                              collect kept))))

(defun handle-of (value)
  "The handle of VALUE, a new one if it has none."
  (loop for handle from *last-handle* downto (oldest-handle)
        when (and (plusp handle) (eq value (handle-value handle))) return handle
        finally (let ((octets (octets-of value)))
                  (setf (svref *handles* (mod (incf *last-handle*) +max-handles+)) (sb-ext:make-weak-pointer value))
                  (when octets (push (list *last-handle* value octets) *kept-values*))
                  (keep-within-budget)
                  (return *last-handle*))))

(defun handle-value (handle)
  "The value of HANDLE, and whether there is one."
  (let ((pointer (and (<= (oldest-handle) handle *last-handle*) (svref *handles* (mod handle +max-handles+)))))
    (if pointer (sb-ext:weak-pointer-value pointer) (values nil nil))))

(defun drop-handles ()
  (setf *kept-values* '())
  (fill *handles* nil))

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
  (when (and (not *no-handles*) (or cut
            (typecase value
              ((or number character symbol string pathname) nil)
              ((or standard-object function hash-table package condition stream) t)
              (t (not (whole-text-p text))))))
    (handle-of value)))
