;;;; Another file of the system garden, in a module.

(in-package :garden)

(defun rose () :red)
