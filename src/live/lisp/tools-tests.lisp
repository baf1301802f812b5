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
    ("ROVE" "RUN" rove-outcomes)))

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

(defun run-suite (name package-name)
  (let* ((symbol (symbol-named name package-name))
         (framework (find-if (lambda (entry) (watched-function (first entry) (second entry))) *frameworks*)))
    (unless framework (refuse "No test framework is loaded: load the system of the tests first, or give `system`"))
    (funcall (watched-function (first framework) (second framework)) symbol)))

(defun needed-for-tests (system)
  "The systems that ASDF loads only for the test operation of SYSTEM."
  (let ((reader (optional-symbol "COMPONENT-IN-ORDER-TO" "ASDF/COMPONENT")))
    (loop for (operation . needs) in (and reader (ignore-errors (funcall reader system)))
          when (string-equal operation "TEST-OP")
            append (loop for (nil . names) in needs append (mapcar #'dependency-name names)))))

(defun test-system (name)
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
               (unless outcomes
                 (push (make-outcome :name (format nil "the test operation of ~A" (or suite system))) outcomes))
               (values "" :tests (tests-json outcomes) :output output))))))
