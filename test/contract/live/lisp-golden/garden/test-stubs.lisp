;;;; Stand-ins for Parachute and Rove: the functions by which run-tests finds and runs their tests.

(defpackage parachute (:use cl) (:export test name parent results status expression format-result))
(defpackage rove/core/suite/package (:use cl) (:export suite-name))
(defpackage rove (:use cl) (:export run run-suite all-suites))
(defpackage garden-suites (:use cl))

(in-package parachute)
(defclass value-result () ((status :initarg :status :reader status) (expression :initarg :expression :reader expression)))
(defstruct report results)
(defstruct check name parent)
(defvar *tests* (list (make-check :name "roses") (make-check :name "thorns" :parent "roses")))
(defun test-packages () (list (find-package "GARDEN-SUITES")))
(defun package-tests (package) (declare (ignore package)) *tests*)
(defun name (check) (check-name check))
(defun parent (check) (check-parent check))
(defun results (report) (report-results report))
(defun format-result (result how) (declare (ignore how)) (format nil "~A is wilted" (expression result)))
(defun test (designator)
  (make-report :results (vector (make-instance 'value-result :expression designator
                                                             :status (if (check-p designator) :passed :failed)))))

(in-package rove/core/suite/package)
(defun suite-name (suite) (string-downcase suite))

(in-package rove)
(defun all-suites () '(:hedge-tests))
(defun run-suite (suite) (format t "~A clipped~%" suite) t)
(defun run (target) target)
