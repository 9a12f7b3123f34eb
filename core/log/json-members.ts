/** Members of a line that are JSON already, for a line that is written with every request: nothing is copied or encoded anew. */
export class JsonMembers {
  /** `text`: valid and short, without braces, as `"status":200,"ms":1.5`. */
  constructor(readonly text: string) {}

  parsed(): object {
    return JSON.parse(`{${this.text}}`) as object
  }
}

/** True for a text that is in JSON as it is, and that no line has to shorten. */
export const isPlainText = (text: string): boolean => plain.test(text)

const plain = /^[\w/.:~%@,;=+-]{0,500}$/
