;;;; run-tests: runs the tests of a system or a suite and reports counts, names and reasons. The frameworks are not
;;;; called for their printed report: the functions that return their results are watched while the tests run, so that a
;;;; system that starts its tests itself, in ASDF's test operation, is reported too.

(in-package "CATENARY-GUEST")

(defparameter *reason-chars* 1000 "Characters of the reason of one failure.")
(defparameter *failure-limit* 100 "Failures that are listed.")

(defstruct outcome (status :passed) name reason)

(defun cut-reason (reason)
  (let ((text (one-line (princ-to-string (or reason "")))))
    (if (> (length text) *reason-chars*) (concatenate 'string (subseq text 0 *reason-chars*) "...") text)))

;;; Each framework: its package, the function to watch, and how to read the values that the function returns.

(defun fiveam-outcomes (results)
  (flet ((is (result type) (typep result (find-symbol type "IT.BESE.FIVEAM"))))
    (loop for result in results
          collect (make-outcome :status (cond ((is result "TEST-PASSED") :passed) ((is result "TEST-SKIPPED") :skipped)
                                              (t :failed))
                                :name (full-name (call-in "IT.BESE.FIVEAM" "NAME"
                                                          (call-in "IT.BESE.FIVEAM" "TEST-CASE" result)))
                                :reason (cut-reason (call-in "IT.BESE.FIVEAM" "REASON" result))))))

(defun parachute-outcomes (report)
  (let ((leaf (find-symbol "VALUE-RESULT" "PARACHUTE")))
    (loop for result across (call-in "PARACHUTE" "RESULTS" report)
          when (typep result leaf)
            collect (make-outcome :status (case (call-in "PARACHUTE" "STATUS" result)
                                            (:passed :passed) (:failed :failed) (t :skipped))
                                  :name (one-line (brief (call-in "PARACHUTE" "EXPRESSION" result)))
                                  :reason (cut-reason (call-in "PARACHUTE" "FORMAT-RESULT" result :extensive))))))

(defun rove-outcomes (passed)
  (list (make-outcome :status (if passed :passed :failed) :name "rove"
                      :reason "The output has the failed assertions.")))

(defparameter *frameworks*
  '(("IT.BESE.FIVEAM" "RUN" fiveam-outcomes)
    ("PARACHUTE" "TEST" parachute-outcomes)
    ("ROVE" "RUN" rove-outcomes)
    ("ROVE" "RUN-SUITE" rove-outcomes)))

(defun watched-function (package name)
  (let ((symbol (and (find-package package) (find-symbol name package))))
    (and symbol (fboundp symbol) symbol)))

(defun call-collecting (function)
  "Call FUNCTION; return the outcomes of all frameworks that it used."
  (let ((collected '()) (depth 0) (watched '()))
    (unwind-protect
         (progn
           (loop for (package name reader) in *frameworks*
                 for symbol = (watched-function package name)
                 when symbol
                   do (let ((reader reader))
                        (push symbol watched)
                        (sb-int:encapsulate
                         symbol 'catenary-tests
                         (lambda (original &rest arguments)
                           (incf depth)
                           (let ((values (unwind-protect (multiple-value-list (apply original arguments)) (decf depth))))
                             ;; A suite may run others by the same function; only the outermost counts.
                             (when (zerop depth)
                               (setf collected (append collected (funcall reader (first values)))))
                             (values-list values))))))
           (funcall function))
      (dolist (symbol watched) (sb-int:unencapsulate symbol 'catenary-tests)))
    collected))

;;; What can be run by name. A target has the package and the name by which it is found, whether it is a suite, and the
;;; function that runs it.

(defstruct target package name suite-p run)

(defun fiveam-targets ()
  (let ((suite (find-symbol "TEST-SUITE" "IT.BESE.FIVEAM")))
    (loop for name in (call-in "IT.BESE.FIVEAM" "TEST-NAMES")
          when (and name (symbolp name))
            collect (let ((name name))
                      (make-target :package (symbol-package name) :name (symbol-name name)
                                   :suite-p (typep (call-in "IT.BESE.FIVEAM" "GET-TEST" name) suite)
                                   :run (lambda () (call-in "IT.BESE.FIVEAM" "RUN" name)))))))

(defun parachute-targets ()
  (loop for package in (call-in "PARACHUTE" "TEST-PACKAGES")
        for tests = (call-in "PARACHUTE" "PACKAGE-TESTS" package)
        append (loop for test in tests
                     collect (let ((test test))
                               (make-target :package package :name (string (call-in "PARACHUTE" "NAME" test))
                                            :suite-p (null (call-in "PARACHUTE" "PARENT" test))
                                            :run (lambda () (call-in "PARACHUTE" "TEST" test)))))
        collect (let ((package package))
                  (make-target :name (package-name package) :suite-p t
                               :run (lambda () (call-in "PARACHUTE" "TEST" package))))))

(defun rove-targets ()
  "In Rove, the suites are packages."
  (loop for suite in (call-in "ROVE" "ALL-SUITES")
        collect (let ((suite suite))
                  (make-target :name (call-in "ROVE/CORE/SUITE/PACKAGE" "SUITE-NAME" suite) :suite-p t
                               :run (lambda () (call-in "ROVE" "RUN-SUITE" suite))))))

(defun all-targets ()
  (loop for (package reader) in '(("IT.BESE.FIVEAM" fiveam-targets) ("PARACHUTE" parachute-targets)
                                  ("ROVE" rove-targets))
        when (find-package package) append (funcall reader)))

(defun target-title (target)
  (format nil "~@[~A::~]~A" (and (target-package target) (package-name (target-package target))) (target-name target)))

(defun listed-suites (targets)
  "The names of the suites; of all targets if there are no suites."
  (let ((titles (sort (mapcar #'target-title (or (remove-if-not #'target-suite-p targets) targets)) #'string<)))
    (format nil "~{~A~^, ~}~:[~;, ...~]" (subseq titles 0 (min *failure-limit* (length titles)))
            (> (length titles) *failure-limit*))))

(defun run-suite (name package-name)
  (unless (find-if (lambda (entry) (watched-function (first entry) (second entry))) *frameworks*)
    (refuse "No test framework is loaded: load the system of the tests first, or give `system`"))
  (multiple-value-bind (prefix bare) (name-parts (string-trim " '\"" name))
    (let* ((wanted (or (and (not (equal prefix "KEYWORD")) prefix) package-name))
           (home (and wanted (package-named wanted)))
           (targets (all-targets))
           (found (remove-if-not (lambda (target)
                                   (and (string-equal bare (target-name target))
                                        (or (null home) (null (target-package target))
                                            (eq home (target-package target)))))
                                 targets))
           (own (remove (package-named nil) found :test-not #'eq :key #'target-package)))
      (cond ((null targets)
             (refuse "There is no suite or test ~A: none is defined. Load the system of the tests first, or give `system`"
                     name))
            ((null found)
             (refuse "There is no suite or test ~A~@[ in package ~A~]. The suites are: ~A" name
                     (and home (package-name home)) (listed-suites targets)))
            ((and (rest found) (/= 1 (length own)))
             (refuse "The name ~A is ambiguous; give one of these: ~{~A~^, ~}" name (mapcar #'target-title found)))
            (t (funcall (target-run (first (or own found)))))))))

(defun needed-for-tests (system)
  "The systems that ASDF loads only for the test operation of SYSTEM."
  (let ((reader (optional-symbol "COMPONENT-IN-ORDER-TO" "ASDF/COMPONENT")))
    (loop for (operation . needs) in (and reader (ignore-errors (funcall reader system)))
          when (string-equal operation "TEST-OP")
            append (loop for (nil . names) in needs append (mapcar #'dependency-name names)))))

(defun test-system (name)
  ;; An error is one of a system that cannot be read.
  (unless (handler-case (asdf:find-system (system-title name) nil) (error () t)) (no-system name))
  ;; Loaded first, so that the frameworks exist when they are watched.
  (let ((system (system-named name)))
    (asdf:load-system system)
    (dolist (need (needed-for-tests system)) (asdf:load-system need))
    (call-collecting (lambda () (asdf:test-system system)))))

(defun tests-json (outcomes)
  (flet ((how-many (status) (count status outcomes :key #'outcome-status)))
    (list :object "passed" (how-many :passed) "failed" (how-many :failed) "skipped" (how-many :skipped)
                  "failures" (cons :array
                                   (loop for outcome in outcomes
                                         when (eq (outcome-status outcome) :failed)
                                           collect (list :object "name" (outcome-name outcome)
                                                                 "reason" (outcome-reason outcome))
                                             into failures
                                         finally (return (subseq failures 0 (min *failure-limit*
                                                                                 (length failures)))))))))

(define-tool "run-tests" (&key system suite package)
  (let ((*refuse* (list nil)) (outcomes nil) (failure nil) (output ""))
    (multiple-value-bind (text error)
        (catch *refuse*
          (unless (or system suite)
            (refuse "Give the name of a system in `system`, or of a suite or test in `suite`"))
          (loading (problem warnings printed)
              (setf outcomes (if suite (call-collecting (lambda () (run-suite suite package))) (test-system system)))
            (declare (ignore warnings))
            (setf failure problem output printed))
          nil)
      (declare (ignore error))
      (cond (text (values text :error t))
            (t (when failure
                 (push (make-outcome :status :failed :name (or suite system) :reason (cut-reason (failure-message failure)))
                       outcomes))
               ;; A test operation may use no framework. A suite without outcomes is one without tests.
               (unless (or outcomes suite)
                 (push (make-outcome :name (format nil "the test operation of ~A" system)) outcomes))
               (values "" :tests (tests-json outcomes) :output output))))))
