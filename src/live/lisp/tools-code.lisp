;;;; validate-syntax, match-paren and macroexpand-form, which do not run code. Code is read without evaluating #. and
;;;; without leaving symbols; if it cannot be read, its parentheses are checked (tools-balance.lisp).

(in-package "CATENARY-GUEST")

(defun reader-message (condition)
  "The reader's message without the lines about its stream."
  (let ((text (message-of condition)))
    (string-trim '(#\Newline #\Space) (subseq text 0 (search (format nil "~%~%") text)))))

(defun tolerant-readtable ()
  "The session's readtable, with a #. that is read but not evaluated."
  (let ((table (copy-readtable *readtable*)))
    (set-dispatch-macro-character #\# #\. (lambda (stream char n)
                                            (declare (ignore char n))
                                            (read stream t nil t)
                                            nil)
                                  table)
    table))

(defun follow-in-package (form)
  (when (and (consp form) (eq (first form) 'in-package) (consp (rest form)))
    (let ((package (ignore-errors (find-package (second form)))))
      (when package (setf *package* package)))))

(defun read-through (code)
  "Read all of CODE; return the number of forms, notes about unknown packages and symbols, the error and its index."
  (let ((*package* *package*) (*readtable* (tolerant-readtable)) (count 0) (notes '()))
    (with-input-from-string (stream code)
      (loop
        (let ((start (file-position stream)))
          (handler-case
              (let ((form (handler-case (read stream nil stream)
                            ((or package-error sb-int:simple-reader-package-error) (e)
                              (pushnew (one-line (reader-message e)) notes :test #'string=)
                              (file-position stream start)
                              (let ((*read-suppress* t)) (read stream nil stream))))))
                (when (eq form stream) (return (values count (nreverse notes))))
                (follow-in-package form)
                (incf count))
            (error (e)
              (return (values count (nreverse notes) (reader-message e)
                              (min (file-position stream) (length code)))))))))))

(defun write-invalid (out message &key line unclosed opened)
  (format out "✗ Syntax invalid~%~%Error: ~A~%~@[Unclosed parentheses: ~D~%~]~@[Approximate location: line ~D~%~]"
          message unclosed line)
  (when opened (format out "Opened at line ~D, column ~D~%" (first opened) (second opened))))

(deftool "validate-syntax" (code)
  (let* ((scan (scan-code code)) (kind (scan-unfinished scan)) (last-line (1+ (count #\Newline code))))
    (multiple-value-bind (pairs open stray) (pair-parens code scan)
      (declare (ignore pairs))
      (text (out)
        (cond (kind
               (write-invalid out (format nil "Unexpected end of input - unterminated ~A" kind)
                              :line last-line :unclosed (and open (length open))
                              :opened (multiple-value-list (line-and-column code (scan-unfinished-at scan)))))
              (stray
               (write-invalid out "Unmatched close parenthesis" :line (line-and-column code (first stray))))
              (open
               (write-invalid out "Unexpected end of input - unclosed parenthesis"
                              :line last-line :unclosed (length open)
                              :opened (multiple-value-list (line-and-column code (first (last open))))))
              (t
               (multiple-value-bind (count notes message index) (leaving-no-symbols (read-through code))
                 (if message
                     (write-invalid out message :line (line-and-column code index))
                     (format out "✓ Syntax valid: ~D top-level form~:P~%~{Note: ~A~%~}" count notes)))))))))

;;; Parentheses

(defun write-context (out code index)
  (let ((line (line-and-column code index)))
    (format out "~%Context:~%")
    (loop for text in (lines-of code)
          for number from 1
          when (<= (- line 2) number (+ line 2))
            do (format out "  ~4D: ~A~:[~;  ◀ match~]~%" number text (= number line)))))

(deftool "match-paren" (code line column)
  (let ((index (index-of code line column)))
    (unless index (refuse "No match: Position out of range: line ~D, column ~D" line column))
    (let* ((char (char code index)) (scan (scan-code code)) (pairs (pair-parens code scan))
           (other (gethash index pairs)))
      (cond ((not (find char "()"))
             (refuse "No match: Character at line ~D, column ~D is '~A', not a parenthesis" line column char))
            ((not (member index (scan-parens scan)))
             (refuse "No match: The parenthesis at line ~D, column ~D is in a string, comment or character"
                     line column))
            ((not other)
             (format nil "No match: Unmatched ~:[close~;open~] paren at line ~D, column ~D"
                     (char= char #\() line column))
            (t (text (out)
                 (format out "Matching ~A found from line ~D, column ~D~%" (char code other) line column)
                 (multiple-value-call #'format out "Match at line ~D, column ~D~%" (line-and-column code other))
                 (write-context out code other)))))))

;;; Macros

(defun code-text (form)
  "FORM pretty-printed as code."
  (let ((*print-pretty* t) (*print-right-margin* 80) (*print-circle* nil) (*print-length* nil) (*print-level* nil)
        (*print-case* :upcase) (*print-escape* t) (*print-readably* nil))
    (values (print-bounded (max-output *job*) (lambda (stream) (prin1 form stream))))))

(deftool "macroexpand-form" (form full package)
  (let ((*package* (package-named package)))
    (leaving-no-symbols
      (let ((read (handler-case (first-form form)
                    (end-of-file () (refuse "Error expanding form: unexpected end of input"))
                    (error (e) (refuse "Error expanding form: ~A" (reader-message e))))))
        (multiple-value-bind (values failure) (guarded () (if full (macroexpand read) (macroexpand-1 read)))
          (when failure (refuse "Error expanding form: ~A" (failure-summary failure)))
          (format nil "Original:~%~A~%~%~:[(No expansion - not a macro form)~;Expanded:~%~:*~A~]" (code-text read)
                  (and (second values) (code-text (first values)))))))))
