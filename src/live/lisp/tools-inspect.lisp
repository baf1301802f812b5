;;;; inspect: the parts of a value by its handle, a page at a time; and what CL:INSPECT and STEP do in a session, where
;;;; a prompt could not be answered. The handles are those of guest-handles.lisp.

(in-package "CATENARY-GUEST")

(defconstant +page+ 50 "Parts that are shown at once, unless the caller says otherwise.")
(defconstant +max-page+ 200)
(defconstant +part-chars+ 300 "Characters of one part.")
(defconstant +string-line+ 200 "Characters of a line of a string.")
(defconstant +max-parts+ 10000000 "Elements of a list that are counted.")

(defstruct (parts (:constructor make-parts (what total list)))
  "WHAT an object is, how many parts it has, and a function of two indexes that returns the parts from one to the other:
lists of a label or nil and a value, or of a label and :UNBOUND alone, or (:ENTRY key value)."
  what total list)

(defun listed (what parts)
  "Parts that are in a list."
  (make-parts what (length parts) (lambda (start end) (subseq parts start end))))

(defun count-conses (list)
  "The number of conses of LIST, and :PROPER, :DOTTED, :CIRCULAR or :LONG."
  (loop with slow = list
        for fast = list then (cdr fast)
        for count from 0
        do (cond ((null fast) (return (values count :proper)))
                 ((atom fast) (return (values count :dotted)))
                 ((and (plusp count) (eq fast slow)) (return (values (circle-length list) :circular)))
                 ((= count +max-parts+) (return (values count :long))))
           (when (oddp count) (setf slow (cdr slow)))))

(defun circle-length (list)
  "How many conses a circular LIST has."
  (let ((seen (make-hash-table :test 'eq)))
    (loop for cell = list then (cdr cell)
          for count from 0
          when (gethash cell seen) return count
          do (setf (gethash cell seen) t))))

(defun list-parts (list)
  (multiple-value-bind (count kind) (count-conses list)
    (make-parts (format nil "~A of ~:D element~:P"
                        (ecase kind (:proper "list") (:dotted "dotted list") (:circular "circular list")
                          (:long "very long list"))
                        count)
                (if (eq kind :dotted) (1+ count) count)
                (lambda (start end)
                  (loop for index from start below end
                        for cell = (nthcdr start list) then (cdr cell)
                        collect (if (consp cell) (list nil (car cell)) (list "tail" cell)))))))

(defun array-parts (array)
  (let ((dimensions (array-dimensions array)) (total (if (vectorp array) (length array) (array-total-size array))))
    (make-parts (format nil "~:[array of ~*~{~D~^ x ~} elements~;vector of ~:D element~:P~*~]~@[, type ~S~]"
                        (vectorp array) total dimensions
                        (let ((type (array-element-type array))) (and (not (eq type t)) type)))
                total
                (lambda (start end)
                  (loop for index from start below end
                        collect (list (and (rest dimensions) (subscripts index dimensions))
                                      (row-major-aref array index)))))))

(defun subscripts (index dimensions)
  (let ((found '()))
    (dolist (dimension (reverse dimensions) (format nil "(~{~D~^ ~})" found))
      (multiple-value-bind (rest here) (floor index (max 1 dimension))
        (push here found)
        (setf index rest)))))

(defun string-parts (string)
  "The lines of STRING; a long line is several parts."
  (listed (format nil "string of ~:D character~:P" (length string))
          (loop for line in (lines-of string)
                append (loop for start from 0 by +string-line+
                             collect (list nil (subseq line start (min (length line) (+ start +string-line+))))
                             while (< (+ start +string-line+) (length line))))))

(defun table-parts (table)
  (make-parts (format nil "hash table, test ~S, ~:D entr~:@P" (hash-table-test table) (hash-table-count table))
              (hash-table-count table)
              (lambda (start end)
                (let ((index -1) (found '()))
                  (block nil
                    (maphash (lambda (key value)
                               (incf index)
                               (when (>= index end) (return))
                               (when (>= index start) (push (list :entry key value) found)))
                             table))
                  (nreverse found)))))

(defun slot-parts (object)
  (listed (format nil "instance of ~S" (class-name (class-of object)))
          (loop for slot in (sb-mop:class-slots (class-of object))
                for name = (sb-mop:slot-definition-name slot)
                collect (if (slot-boundp object name)
                            (list (symbol-name name) (slot-value object name))
                            (list (symbol-name name))))))

(defun package-parts (package)
  (let ((exported '()))
    (do-external-symbols (symbol package) (push symbol exported))
    (listed "package"
            (list* (list "nicknames" (package-nicknames package))
                   (list "uses" (mapcar #'package-name (package-use-list package)))
                   (list "used by" (mapcar #'package-name (package-used-by-list package)))
                   (loop for symbol in (sort exported #'string<) collect (list "exports" symbol))))))

(defun function-parts (function)
  (let ((closure (and (sb-kernel:closurep function) (ignore-errors (sb-kernel:%closure-values function)))))
    (listed (if closure "closure" "function")
            (append (list (list "name" (sb-kernel:%fun-name function))
                          (list "lambda list" (sb-introspect:function-lambda-list function)))
                    (when (documentation function t) (list (list "documentation" (documentation function t))))
                    (when (typep function 'generic-function)
                      (loop for method in (sb-mop:generic-function-methods function) collect (list "method" method)))
                    (loop for value in closure collect (list "closed over" value))))))

(defun symbol-parts (symbol)
  (listed "symbol"
          (list (list "package" (symbol-package symbol))
                (if (boundp symbol) (list "value" (symbol-value symbol)) (list "value"))
                (if (fboundp symbol) (list "function" (fdefinition symbol)) (list "function"))
                (list "class" (find-class symbol nil))
                (list "properties" (symbol-plist symbol)))))

(defvar *inspected-nothing* (list nil) "A value that no object has.")

(defun other-parts (object)
  "Parts as SBCL's own inspector knows them."
  (let ((inspected (optional-symbol "INSPECTED-PARTS" "SB-IMPL")))
    (listed (string-downcase (princ-to-string (type-of object)))
            (when inspected
              (multiple-value-bind (description named elements) (ignore-errors (funcall inspected object))
                (declare (ignore description))
                (loop for element in elements
                      for (label . value) = (if named element (cons nil element))
                      collect (if (eq value (symbol-value (or (optional-symbol "*INSPECT-UNBOUND-OBJECT-MARKER*" "SB-IMPL")
                                                              '*inspected-nothing*)))
                                  (list (princ-to-string label))
                                  (list (and label (princ-to-string label)) value))))))))

(defun parts-of (object)
  (typecase object
    (cons (list-parts object))
    (string (string-parts object))
    (array (array-parts object))
    (hash-table (table-parts object))
    (package (package-parts object))
    (function (function-parts object))
    (symbol (symbol-parts object))
    ((or standard-object structure-object) (slot-parts object))
    (t (other-parts object))))

(defun part-shown (value)
  "VALUE in brief, and its handle if that does not show all of it."
  (if (symbolp value)
      (values (brief value) nil)
      (let ((*print-length* 10) (*print-level* 3))
        (multiple-value-bind (text cut) (print-argument value nil +part-chars+)
          (values text (handle-for value text cut))))))

(defun part-text (value)
  "VALUE in brief, with its handle if that does not show all of it."
  (multiple-value-call #'format nil "~A~@[ [handle ~D]~]" (part-shown value)))

(defun part-line (index part)
  (if (eq (first part) :entry)
      (format nil "~D: ~A => ~A" index (part-text (second part)) (part-text (third part)))
      (destructuring-bind (label &optional (value nil bound)) part
        (format nil "~D: ~@[~A = ~]~:[unbound~;~A~]" index label bound (and bound (part-text value))))))

(defun part-json (index part)
  "The same as data: a name, a text and a handle. A key that is no text of its own is printed."
  (flet ((part (name value) (multiple-value-bind (text handle) (part-shown value)
                              (list :object "name" name "text" text "handle" handle))))
    (if (eq (first part) :entry)
        (part (part-shown (second part)) (third part))
        (destructuring-bind (label &optional (value nil bound)) part
          (let ((name (or label (format nil "~D" index))))
            (if bound (part name value) (list :object "name" name "text" "unbound")))))))

(defun parts-json (object start count)
  "A page of the parts of OBJECT as data, and how many parts it has."
  (let* ((parts (parts-of object)) (total (parts-total parts))
         (start (max 0 (min start total))) (end (min total (+ start (max 0 (min count +max-page+))))))
    (values (cons :array (loop for part in (funcall (parts-list parts) start end)
                               for index from start
                               collect (part-json index part)))
            total)))

(defun inspection-head (object parts)
  (text (out)
    (format out "~A~%Type: ~S (~A)" (let ((*print-length* 10) (*print-level* 3))
                                      (print-argument object nil +part-chars+))
            (type-of object) (parts-what parts))))

(defun inspection (object start count)
  "The text about OBJECT, with COUNT parts from START on."
  (let* ((parts (parts-of object)) (total (parts-total parts))
         (start (max 0 (min start total))) (end (min total (+ start (max 0 (min count +max-page+))))))
    (text (out)
      (write-line (inspection-head object parts) out)
      (loop for part in (funcall (parts-list parts) start end)
            for index from start
            do (format out "~A~%" (part-line index part)))
      (when (or (plusp start) (< end total))
        (format out "[Parts ~D to ~D of ~:D~@[; the next ones: start ~D~]]" start (max start (1- end)) total
                (and (< end total) end))))))

(define-tool "inspect" (&key handle (start 0) (count +page+) parts)
  (let ((*refuse* (list nil)))
    (catch *refuse*
      (let ((value (handled-value handle)))
        (if parts
            (multiple-value-bind (page total) (parts-json value start count)
              (values nil :json (list :object "text" (inspection-head value (parts-of value)) "parts" page "total" total)))
            (inspection value start count))))))

(defun handled-value (handle)
  "The value of HANDLE; refuses if there is none."
  (unless (integerp handle) (refuse "Give the number of a handle."))
  (multiple-value-bind (value found) (handle-value handle)
    (unless found
      (refuse "~:[There is no handle ~D. ~:[No value has one yet~;The newest is ~:*~D~].~;~
               The value of handle ~D was dropped: the last ~*~D are kept if they are small, or as long as a variable ~
               holds them. Evaluate the code again.~]"
              (<= 1 handle *last-handle*) handle (and (plusp *last-handle*) *last-handle*) +max-handles+))
    value))

;;; CL:INSPECT and STEP

(defun inspect-here (object input output)
  "What CL:INSPECT does in a session: it describes OBJECT and gives it a handle, instead of a prompt without an answer."
  (declare (ignore input))
  (format output "~&~A~%[handle ~D]~%" (inspection object 0 +page+) (handle-of object))
  (values))

(defconstant +max-steps+ 200 "Steps that STEP shows.")
(defvar *steps* 0 "Steps of the STEP form so far.")

(defun show-step (condition)
  "What STEP does in a session: it prints each step and goes on."
  (let ((*print-pretty* nil))
    (typecase condition
      (sb-ext:step-form-condition
       (format t "~&; ~A~%" (sb-ext:step-condition-form condition))
       (invoke-restart (if (< (incf *steps*) +max-steps+) 'sb-ext:step-into 'sb-ext:step-continue)))
      (sb-ext:step-values-condition
       (format t "~&; ~A => ~{~A~^, ~}~%" (sb-ext:step-condition-form condition)
               (mapcar #'brief (sb-ext:step-condition-result condition)))))))

(defun set-prompts ()
  "Replace what would ask at a prompt. Called when the guest starts."
  (let ((inspect (optional-symbol "*INSPECT-FUN*" "SB-IMPL"))) (when inspect (set inspect 'inspect-here)))
  (setf sb-ext:*stepper-hook* 'show-step))
