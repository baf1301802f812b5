;;;; Finds the parentheses of Lisp code without reading it, skipping those in strings, comments, |symbols| and
;;;; characters such as #\(. For match-paren and validate-syntax (tools-code.lisp), which must handle code that cannot
;;;; be read. Only the standard syntax is supported, no reader macros of the user.

(in-package "CATENARY-GUEST")

(defstruct scan
  parens                                ; indexes of the parentheses in code, in order
  unfinished                            ; what is not terminated: "string", "block comment", "symbol", or nil
  unfinished-at)

(defun constituent-p (char)
  (not (find char '(#\( #\) #\" #\; #\' #\` #\, #\Space #\Newline #\Tab #\Return #\Page))))

(defun skip-to (code start stop)
  "The index after the next unescaped STOP; nil if there is none."
  (loop with i = start
        while (< i (length code))
        do (let ((char (char code i)))
             (cond ((char= char #\\) (incf i 2))
                   ((char= char stop) (return (1+ i)))
                   (t (incf i))))))

(defun skip-block-comment (code start)
  "The index after the (nestable) comment that begins at START; nil if it does not end."
  (loop with depth = 0 and i = start
        while (< i (length code))
        do (cond ((eql (mismatch "#|" code :start2 i :end2 (min (length code) (+ i 2))) nil) (incf depth) (incf i 2))
                 ((eql (mismatch "|#" code :start2 i :end2 (min (length code) (+ i 2))) nil)
                  (decf depth) (incf i 2)
                  (when (zerop depth) (return i)))
                 (t (incf i)))))

(defun skip-character (code start)
  "The index after a #\\x or #\\Name whose # is at START."
  (let ((end (min (length code) (+ start 3))))
    (if (and (<= end (length code)) (< (+ start 2) (length code)) (constituent-p (char code (+ start 2))))
        (or (position-if-not #'constituent-p code :start end) (length code))
        end)))

(defun scan-code (code)
  (let ((parens '()) (i 0) (size (length code)))
    (flet ((finish (kind at) (return-from scan-code
                               (make-scan :parens (nreverse parens) :unfinished kind :unfinished-at at))))
      (loop while (< i size)
            do (let ((char (char code i)) (next (and (< (1+ i) size) (char code (1+ i)))))
                 (cond ((char= char #\;) (setf i (or (position #\Newline code :start i) size)))
                       ((char= char #\") (setf i (or (skip-to code (1+ i) #\") (finish "string" i))))
                       ((char= char #\|) (setf i (or (skip-to code (1+ i) #\|) (finish "symbol" i))))
                       ((and (char= char #\#) (eql next #\|))
                        (setf i (or (skip-block-comment code i) (finish "block comment" i))))
                       ((and (char= char #\#) (eql next #\\)) (setf i (skip-character code i)))
                       ((char= char #\\) (incf i 2))
                       (t (when (find char "()") (push i parens))
                          (incf i)))))
      (finish nil nil))))

(defun pair-parens (code scan)
  "A table from each matched parenthesis to its partner; then the unmatched open ones and the unmatched close ones."
  (let ((pairs (make-hash-table)) (open '()) (stray '()))
    (dolist (index (scan-parens scan) (values pairs (reverse open) (nreverse stray)))
      (cond ((char= (char code index) #\() (push index open))
            (open (let ((other (pop open)))
                    (setf (gethash index pairs) other (gethash other pairs) index)))
            (t (push index stray))))))

(defun line-and-column (code index)
  "The line, from 1, and the column, from 0, of INDEX."
  (let ((start (position #\Newline code :end index :from-end t)))
    (values (1+ (count #\Newline code :end index)) (if start (- index start 1) index))))

(defun index-of (code line column)
  "The index of LINE and COLUMN; nil if there is none."
  (let ((start 0))
    (loop repeat (1- line)
          do (let ((newline (position #\Newline code :start start)))
               (if newline (setf start (1+ newline)) (return-from index-of nil))))
    (let ((end (or (position #\Newline code :start start) (length code))))
      (and (<= 1 line) (<= 0 column) (< (+ start column) end) (+ start column)))))
