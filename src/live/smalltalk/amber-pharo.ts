// Class definitions as Pharo writes them, on Amber: with class variables and a package, and the fluent form
// `Object << #Account slots: { #balance }; package: 'Bank'`. Compiled when code first needs them, since that takes time.

import type { AmberImage } from "./amber-image.ts";

const NAME = "CatenaryClassDefinition";
/** What the code has if it may need them. */
const HINTS = /\b(?:package|category|classVariables):|<</;

const CHECK =
  "shared isEmpty ifFalse: [ self error: 'Amber has no class variables; use instance variables of the class side' ].";

const METHODS: readonly (readonly [className: string, source: string])[] = [
  ...["package", "category"].map(
    (last) =>
      [
        "Class",
        `subclass: aString instanceVariableNames: names classVariableNames: shared ${last}: aPackage
	${CHECK}
	^ self subclass: aString instanceVariableNames: names package: aPackage`,
      ] as const,
  ),
  [
    "Class",
    `subclass: aString slots: names classVariables: shared package: aPackage
	${CHECK}
	^ self subclass: aString slots: names package: aPackage`,
  ],
  ["Class", `<< aString\n\t^ ${NAME} new setSuperclass: self name: aString`],
  [
    NAME,
    `setSuperclass: aClass name: aString
	parent := aClass.
	name := aString.
	slots := #().
	package := 'Live'.
	Smalltalk globals at: name ifPresent: [ :known | known superclass == parent ifTrue: [
		slots := known instanceVariableNames.
		package := known category ] ].
	self install`,
  ],
  [NAME, "install\n\t^ parent subclass: name slots: slots package: package"],
  [
    NAME,
    "slots: names\n\tslots := names isString ifTrue: [ names tokenize: ' ' ] ifFalse: [ names asArray ].\n\t^ self install",
  ],
  [NAME, "instanceVariableNames: names\n\t^ self slots: names"],
  [NAME, "package: aString\n\tpackage := aString.\n\t^ self install"],
  [NAME, "category: aString\n\t^ self package: aString"],
  [NAME, "tag: aString\n\t^ self install"],
  [NAME, "comment: aString\n\t^ self install comment: aString; yourself"],
  [NAME, `sharedVariables: shared\n\t${CHECK}\n\t^ self install`],
  [NAME, "printOn: aStream\n\taStream print: self install"],
];

/** Compiles them once, if the code may need them. */
export class PharoDefinitions {
  readonly #image: AmberImage;
  #isInstalled = false;

  constructor(image: AmberImage) {
    this.#image = image;
  }

  prepare(code: string): void {
    if (this.#isInstalled || !HINTS.test(code)) return;
    this.#isInstalled = true;
    const { globals, onChange } = this.#image;
    // They are not definitions of the user.
    this.#image.onChange = () => undefined;
    try {
      const slots = ["parent", "name", "slots", "package"];
      this.#image.send(globals["Object"], "subclass:slots:package:", NAME, slots, "Catenary");
      const compiler = this.#image.send(globals["Compiler"], "new");
      for (const [className, source] of METHODS) {
        this.#image.send(compiler, "install:forClass:protocol:", source, globals[className], "*Catenary");
      }
    } finally {
      this.#image.onChange = onChange;
    }
  }
}
