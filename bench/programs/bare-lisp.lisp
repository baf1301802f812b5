;;; The baseline for live Lisp: the image itself is the server. A loop reads a JSON line, evaluates the code of the call,
;;; and writes a JSON line.

(declaim (optimize (speed 1)))

(defun skip-blanks (in)
  (loop while (member (peek-char nil in) '(#\Space #\Tab #\Newline #\Return)) do (read-char in)))

(defun read-json-string (in)
  (read-char in)
  (with-output-to-string (out)
    (loop for c = (read-char in)
          until (char= c #\")
          do (write-char (if (char= c #\\)
                             (let ((escaped (read-char in)))
                               (case escaped
                                 (#\n #\Newline)
                                 (#\t #\Tab)
                                 (#\u (code-char (parse-integer (coerce (loop repeat 4 collect (read-char in)) 'string)
                                                                :radix 16)))
                                 (t escaped)))
                             c)
                         out))))

(defun read-json (in)
  "An object is a hash table, an array a list."
  (skip-blanks in)
  (case (peek-char nil in)
    (#\" (read-json-string in))
    (#\{ (read-char in)
     (let ((table (make-hash-table :test 'equal)))
       (skip-blanks in)
       (loop until (char= (peek-char nil in) #\})
             do (let ((key (progn (skip-blanks in) (read-json-string in))))
                  (skip-blanks in)
                  (read-char in)
                  (setf (gethash key table) (read-json in))
                  (skip-blanks in)
                  (when (char= (peek-char nil in) #\,) (read-char in))))
       (read-char in)
       table))
    (#\[ (read-char in)
     (skip-blanks in)
     (prog1 (loop until (char= (peek-char nil in) #\])
                  collect (read-json in)
                  do (skip-blanks in)
                     (when (char= (peek-char nil in) #\,) (read-char in)))
       (read-char in)))
    (t (let ((word (with-output-to-string (out)
                     (loop for c = (peek-char nil in nil #\,)
                           until (find c ",]} ")
                           do (write-char (read-char in) out)))))
         (cond ((string= word "true") t)
               ((member word '("false" "null") :test #'string=) nil)
               (t (let ((*read-eval* nil)) (read-from-string word))))))))

(defun write-json (value out)
  (etypecase value
    (integer (format out "~d" value))
    (string
     (write-char #\" out)
     (loop for c across value
           do (case c
                ((#\" #\\) (write-char #\\ out) (write-char c out))
                (#\Newline (write-string "\\n" out))
                (t (write-char c out))))
     (write-char #\" out))
    (symbol (write-string (if value "true" "false") out))
    (list
     (write-char (if (eq (car value) :object) #\{ #\[) out)
     (if (eq (car value) :object)
         (loop for (key item . rest) on (cdr value) by #'cddr
               do (write-json key out) (write-char #\: out) (write-json item out) (when rest (write-char #\, out)))
         (loop for (item . rest) on (cdr value) do (write-json item out) (when rest (write-char #\, out))))
     (write-char (if (eq (car value) :object) #\} #\]) out))))

(defun evaluate (code)
  "Returns the text of the result, and whether it is an error."
  (let ((printed (make-string-output-stream)))
    (handler-case
        (let ((values (let ((*standard-output* printed)) (multiple-value-list (eval (read-from-string code))))))
          (values (format nil "~a~{=> ~s~^~%~}" (get-output-stream-string printed) values) nil))
      (error (condition) (values (format nil "[ERROR] ~a~%~a" (type-of condition) condition) t)))))

(defun serve (in out)
  (loop for line = (read-line in nil)
        while line
        do (let* ((request (with-input-from-string (text line) (read-json text)))
                  (arguments (gethash "arguments" (gethash "params" request))))
             (multiple-value-bind (text failed) (evaluate (gethash "code" arguments))
               (write-json (list :object "jsonrpc" "2.0" "id" (gethash "id" request)
                                         "result" (list :object "content" (list :array (list :object "type" "text" "text" text))
                                                                "isError" failed))
                           out))
             (terpri out)
             (finish-output out))))

(let ((in (sb-sys:make-fd-stream 0 :input t :external-format :utf-8 :buffering :full))
      (out (sb-sys:make-fd-stream 1 :output t :external-format :utf-8 :buffering :full)))
  (serve in out)
  (sb-ext:exit))
