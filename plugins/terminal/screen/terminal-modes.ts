/** Full reset (RIS): whatever the terminal was told before is forgotten. */
const reset = '\u001bc'
/** By their numbers, those that programs set for as long as they run, and what they are without having been set. */
const defaults: ReadonlyMap<number, boolean> = new Map([
  // The screen that full-screen programs have to themselves comes first: what follows is of that one.
  [1049, false],
  [1047, false],
  [47, false],
  // Keys of the cursor, reversed colours, origin, wrapping, cursor shown.
  [1, false],
  [5, false],
  [6, false],
  [7, true],
  [25, true],
  // The mouse, focus, and pastes in brackets.
  [9, false],
  [1000, false],
  [1002, false],
  [1003, false],
  [1004, false],
  [1005, false],
  [1006, false],
  [1015, false],
  [2004, false]
])
const alternateScreens = [1049, 1047, 47]
const privateModes = /^\u001b\[\?([\d;]{1,60})([hl])$/

/** What a terminal has been told that stays until it is told otherwise. */
export class TerminalModes {
  readonly #set = new Map<number, boolean>()
  #hasKeypad = false

  /** One escape sequence. */
  apply(sequence: string): void {
    if (sequence === reset || sequence === '\u001b[!p') {
      this.#set.clear()
      this.#hasKeypad = false
    } else if (sequence === '\u001b=' || sequence === '\u001b>') {
      this.#hasKeypad = sequence === '\u001b='
    } else {
      const [, numbers = '', letter] = privateModes.exec(sequence) ?? []
      for (const number of numbers.split(';').map(Number))
        if (defaults.has(number)) this.#set.set(number, letter === 'h')
    }
  }

  /** A program has the whole screen to itself. */
  get isAlternate(): boolean {
    return alternateScreens.some(number => this.#set.get(number) === true)
  }

  copy(): TerminalModes {
    const copy = new TerminalModes()
    for (const [number, isOn] of this.#set) copy.#set.set(number, isOn)
    copy.#hasKeypad = this.#hasKeypad
    return copy
  }

  /** What makes a terminal that may be in any state one in this one. */
  get sequences(): string {
    const set = [...defaults].flatMap(([number, usual]) => {
      const isOn = this.#set.get(number) ?? usual
      return isOn === usual ? [] : [`\u001b[?${number}${isOn ? 'h' : 'l'}`]
    })
    return [reset, ...set, ...(this.#hasKeypad ? ['\u001b='] : [])].join('')
  }
}
