;;;; Calls of tools from the user's code, for code mode: CALL-TOOL and what belongs to it. A call is a message to the host.
;;;; The calling thread waits for the answer and parses it itself; the thread that reads the channel only hands it over.
;;;; The user gets these names in the package CATENARY-TOOLS, which exists only after the request set-tools.

(in-package "CATENARY-GUEST")

(declaim (optimize (speed 1) (safety 1) (debug 1)))

(defconstant +max-call-octets+ 1000000 "Octets of the arguments of one call.")
(defconstant +max-nesting+ 100 "Levels of a value that is sent to a tool.")
(defconstant +printed-levels+ 20 "Levels of tables that are printed, since tables can be circular.")

(defshared *callable* '() "The tools that can be called: property lists of :PATH, :NAME, :SIGNATURE
and :SUMMARY.")
(defshared *contents* (make-hash-table :test 'eq :weakness :key :synchronized t)
  "The whole content of results, by the values that CALL-TOOL has returned for them.")

(define-condition tool-failure (error)
  ((tool :initarg :tool :reader tool-error-tool :documentation "The path of the tool.")
   (text :initarg :text :reader tool-error-text :documentation "What the tool says about the error.")
   (content :initarg :content :reader tool-error-content :documentation "The whole content, a vector of tables."))
  (:report (lambda (condition stream) (write-string (tool-error-text condition) stream)))
  (:documentation "A tool has reported an error. The user sees it as TOOL-ERROR, unless that name was redefined."))

;;; Calls that wait for their answers

(defstruct (call (:constructor make-call (id job)))
  id
  job
  (signal (sb-thread:make-semaphore :name "catenary call"))
  ;; The JSON of the answer.
  (answer nil))

(defshared *calls-lock* (sb-thread:make-mutex :name "catenary calls") "Guards the variables below.")
(defshared *calls* (make-hash-table) "Calls without an answer, by id.")
(defshared *last-call* 0 "The id of the newest call.")

(defun open-call ()
  "A new call of the job that runs. Threads of the user have no job of their own."
  (or (let ((job (or *job* (running-job nil))))
        (and job
             (with-lock (*calls-lock*)
               (unless (job-answered job)
                 (let ((id (incf *last-call*))) (setf (gethash id *calls*) (make-call id job)))))))
      (error "Tools can be called only while the code of a run is running.")))

(defun settle (call answer)
  (setf (call-answer call) answer)
  (sb-thread:signal-semaphore (call-signal call)))

(defun take-answer (text)
  "Hand the request TEXT to the thread that waits for it, if it is an answer to a call. Returns whether it is."
  (when (eql (mismatch "{\"call\":" text) 8)
    (let ((call (with-lock (*calls-lock*) (gethash (parse-integer text :start 8 :junk-allowed t) *calls*))))
      (when call (settle call text)))
    t))

(defun end-calls (job)
  "JOB was answered, so the host has cancelled its calls. Other threads may still wait for them."
  (dolist (call (with-lock (*calls-lock*)
                  (loop for call being the hash-values of *calls* when (eq (call-job call) job) collect call)))
    (settle call (coerce "{\"error\":{\"message\":\"The call was cancelled, since its run has ended.\"}}" 'text))))

(defun ask-host (&rest members)
  "Send a call with MEMBERS and wait. Returns the answer, a table with \"result\" or \"error\"."
  (let ((call (open-call)))
    (unwind-protect
         (progn
           (when (send-message (list* :object "call" (call-id call) "target" (job-id (call-job call)) members)
                               +max-call-octets+)
             (error "The arguments of a call can have ~:D octets of JSON; these have more." +max-call-octets+))
           (sb-thread:wait-on-semaphore (call-signal call))
           (read-json (call-answer call) t))
      (with-lock (*calls-lock*) (remhash (call-id call) *calls*)))))

;;; Values as they are sent: the schema of the tool decides what they are in JSON, and the host knows it (arguments.ts).

(defun number-text (float)
  (when (or (sb-ext:float-infinity-p float) (sb-ext:float-nan-p float)) (error "JSON has no number for ~S." float))
  (with-standard-io-syntax
    (let ((*read-default-float-format* (type-of float))) (prin1-to-string float))))

(defun sent-symbol (symbol)
  (list :object (if (keywordp symbol) "keyword" "symbol") (symbol-name symbol)))

(defun sent-list (list depth)
  (unless (handler-case (list-length list) (type-error () t))
    (error "A list that is circular or ends with a dot cannot be sent to a tool."))
  (let ((end (cdr (last list))))
    (list* :object "list" (cons :array (loop for (item) on list collect (sent-value item depth)))
           (and end (list "end" (sent-value end depth))))))

(defun sent-table (table depth)
  (list :object "table"
        (cons :array (loop for key being the hash-keys of table using (hash-value item)
                           collect (typecase key (string key) (symbol (sent-symbol key)) (t (princ-to-string key)))
                           collect (sent-value item depth)))))

(defun sent-value (value &optional (depth 0))
  "VALUE as PUT-VALUE writes it, with a mark if JSON has nothing like it."
  (when (> depth +max-nesting+)
    (error "A value that is circular, or nested in more than ~D levels, cannot be sent to a tool." +max-nesting+))
  (typecase value
    ((or string integer) value)
    (null '(:object "nil" :true))
    ((eql t) :true)
    (float (list :number (number-text value)))
    (rational (list :number (number-text (coerce value 'double-float))))
    (symbol (sent-symbol value))
    (character (string value))
    (pathname (native-path value))
    (vector (cons :array (map 'list (lambda (item) (sent-value item (1+ depth))) value)))
    (hash-table (sent-table value (1+ depth)))
    (cons (sent-list value (1+ depth)))
    (t (error "A ~A cannot be sent to a tool; JSON has strings, numbers, booleans, arrays and objects."
              (symbol-title (if (consp (type-of value)) (first (type-of value)) (type-of value)))))))

(defvar *printed-level* 0 "How many tables are being printed.")

(defun print-table (stream table)
  "Print a table with strings as keys in the way of JSON, and others as SBCL does."
  (if (and (eq (hash-table-test table) 'equal) (< *printed-level* +printed-levels+)
           (loop for key being the hash-keys of table always (stringp key)))
      (let ((*printed-level* (1+ *printed-level*)) (count 0))
        (pprint-logical-block (stream nil :prefix "{" :suffix "}")
          (loop for key being the hash-keys of table using (hash-value value)
                do (unless (zerop count) (write-string ", " stream) (pprint-newline :fill stream))
                   (when (and *print-length* (>= count *print-length*)) (write-string "..." stream) (return))
                   (prin1 key stream)
                   (write-string ": " stream)
                   (prin1 value stream)
                   (incf count))))
      (let ((*print-pretty* nil)) (write table :stream stream))))

;;; What the user calls

(defun known-tool (path)
  (flet ((named (key) (find path *callable* :key (lambda (tool) (getf tool key)) :test #'equal)))
    (or (named :path) (named :name))))

(defun text-block (text)
  (let ((table (make-hash-table :test 'equal)))
    (setf (gethash "type" table) "text" (gethash "text" table) text)
    table))

(defun fail (problem path)
  "Signal the PROBLEM of an answer."
  (let ((message (gethash "message" problem)) (type (optional-symbol "TOOL-ERROR" "CATENARY-TOOLS")))
    (if (equal (gethash "kind" problem) "tool")
        (error (if (and type (subtypep type 'tool-failure)) type 'tool-failure)
               :tool path :text message
               :content (or (gethash "content" problem) (vector (text-block message))))
        (error "~A" message))))

(defun call-tool (path &rest arguments)
  "Call the tool PATH, such as \"notes.search\", and wait for its result. ARGUMENTS are names and values, or one table or
property list. Returns structured content as a value, a text as a string, else a table of \"text\" and \"content\"."
  (let* ((tool (known-tool path)) (title (getf tool :path path)) (sent (if (rest arguments) arguments (first arguments))))
    ;; The host knows what a wrong name is close to.
    (let* ((answer (ask-host "tool" (getf tool :name (princ-to-string path)) "values" (sent-value sent)))
           (problem (gethash "error" answer)) (result (gethash "result" answer)))
      (when problem (fail problem title))
      (multiple-value-bind (structured found) (gethash "structured" result)
        (let* ((content (gethash "content" result))
               (value (cond (found structured) (content result) (t (gethash "text" result "")))))
          (when (and content (not (typep value '(or symbol number character))))
            (setf (gethash value *contents*) content))
          value)))))

(defun tool-content (value)
  "The whole content of a result, a vector of tables, or NIL if it was only text. VALUE is what CALL-TOOL has returned."
  (values (gethash value *contents*)))

(defun tools ()
  "The tools that can be called: property lists of :PATH, :SIGNATURE and :SUMMARY."
  (loop for tool in *callable*
        collect (loop for key in '(:path :signature :summary) append (list key (getf tool key "")))))

(defun search-tools (words &key (limit 10))
  "The tools that match WORDS, the best first: property lists of :PATH, :SIGNATURE and :SUMMARY."
  (let ((answer (ask-host "search" (princ-to-string words) "limit" (max 1 (floor limit)))))
    (when (gethash "error" answer) (fail (gethash "error" answer) "search-tools"))
    (loop for found across (gethash "structured" (gethash "result" answer))
          collect (list :path (gethash "path" found) :signature (gethash "signature" found)
                        :summary (gethash "summary" found)))))

(defun show (value)
  "Add content that a tool has returned to the result of the run: a block such as an image or a resource link, a vector or
list of blocks, or a value with content."
  (flet ((block-p (it) (and (hash-table-p it) (stringp (gethash "type" it)))))
    (let* ((job (or *job* (running-job nil)))
           (content (or (tool-content value) (and (hash-table-p value) (gethash "content" value))))
           (blocks (coerce (cond ((typep value '(and sequence (not string) (not null))) value)
                                 ((typep content '(and vector (not string))) content)
                                 (t (list value)))
                           'list)))
      (unless (and blocks (every #'block-p blocks))
        (error "SHOW takes content that a tool has returned: a block such as an image or a resource link, a sequence of ~
                blocks, or a value with content. Print other values."))
      (when (or (null job) (job-answered job))
        (error "Content can be shown only while the code of a run is running."))
      (when (send-message (list :object "shownValues" (sent-value blocks) "target" (job-id job)) +max-call-octets+)
        (error "The content has more than ~:D octets and cannot be shown." +max-call-octets+))
      (values))))

(defparameter *provided*
  '(call-tool tools search-tools tool-content show tool-error-tool tool-error-text tool-error-content)
  "Functions that the user gets.")

(defun give-name (name package)
  "Export NAME from PACKAGE, and let CL-USER have it unless the user has such a symbol. Shadowing prevents a conflict if
the user's code uses a package that exports the same name."
  (let ((symbol (intern (string name) package)) (user (find-package "COMMON-LISP-USER")))
    (export symbol package)
    (unless (nth-value 1 (find-symbol (string name) user)) (shadowing-import symbol user))
    symbol))

(defun give-names ()
  "The names belong to a package that is not locked, so that the user can define them again."
  (let ((package (make-package "CATENARY-TOOLS" :use '())))
    (dolist (name *provided*) (setf (fdefinition (give-name name package)) (fdefinition name)))
    (eval `(define-condition ,(give-name "TOOL-ERROR" package) (tool-failure) ()))
    (set-pprint-dispatch 'hash-table 'print-table 0 (sb-ext:symbol-global-value '*print-pprint-dispatch*))))

(define-tool "set-tools" (&key tools)
  (setf *callable* tools *no-handles* t)
  (unless (find-package "CATENARY-TOOLS") (give-names))
  "")
