import { test } from 'tap'
import { asksTerminal } from '../screen/asks-terminal.js'
import { EscapeReader } from '../screen/escape-reader.js'
import { Scrollback } from '../screen/scrollback.js'
import { TerminalModes } from '../screen/terminal-modes.js'

const sequencesIn = (...pieces: readonly string[]): string[] => {
  const reader = new EscapeReader()
  return pieces.flatMap(piece => [...reader.read(Buffer.from(piece))].map(({ text }) => text))
}

/** What a fresh terminal is told after a program has said that. */
const told = (sequence: string): string => {
  const modes = new TerminalModes()
  modes.apply(sequence)
  return modes.sequences
}

test('sequences are found between text, however the pieces are cut', t => {
  const text =
    'a\u001b[31mb\u001b]0;title\u0007c\u001bc\u001b(0d\u001bP1$r\u001b\\e\u001b[?1049h\u001b=\u001b7'
  const all = [
    '\u001b[31m',
    '\u001b]0;title\u0007',
    '\u001bc',
    '\u001b(0',
    '\u001bP1$r\u001b\\',
    '\u001b[?1049h',
    '\u001b=',
    '\u001b7'
  ]
  t.same(sequencesIn(text), all)
  for (let at = 1; at < text.length; at++)
    t.same(sequencesIn(text.slice(0, at), text.slice(at)), all, `cut at ${at}`)
  t.same(sequencesIn(...text), all, 'byte by byte')
  t.end()
})

test('a sequence that is broken off begins no other one, and a long one is looked at no further', t => {
  t.same(sequencesIn('\u001b[3\u0018x\u001b[\u001b[1mx'), ['\u001b[3', '\u001b[', '\u001b[1m'])
  const [long = ''] = sequencesIn(`\u001b]0;${'x'.repeat(10_000)}\u0007`)
  t.ok(long.length < 5000)
  t.end()
})

test('modes that programs set are set again in a terminal of any state, and only those', t => {
  const modes = new TerminalModes()
  t.equal(modes.sequences, '\u001bc')
  for (const sequence of [
    '\u001b[?1049;25h',
    '\u001b[?1006;2004h',
    '\u001b[?25l',
    '\u001b[?99999h',
    '\u001b[4h',
    '\u001b='
  ])
    modes.apply(sequence)
  t.equal(modes.sequences, '\u001bc\u001b[?1049h\u001b[?25l\u001b[?1006h\u001b[?2004h\u001b=')
  t.ok(modes.isAlternate)
  modes.copy().apply('\u001bc')
  t.ok(modes.isAlternate, 'a copy is another one')
  for (const sequence of ['\u001b[?1049l', '\u001b[?25h', '\u001b>']) modes.apply(sequence)
  t.equal(modes.sequences, '\u001bc\u001b[?1006h\u001b[?2004h')
  modes.apply('\u001b[!p')
  t.equal(modes.sequences, '\u001bc')
  t.end()
})

test('each mode that programs leave set is set again, and those that a terminal has by itself when they are off', t => {
  for (const mode of [1049, 1047, 47, 1, 5, 6, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 2004])
    t.equal(told(`\u001b[?${mode}h`), `\u001bc\u001b[?${mode}h`)
  for (const mode of [7, 25]) t.equal(told(`\u001b[?${mode}l`), `\u001bc\u001b[?${mode}l`)
  t.end()
})

test('what a program has begun with is shown again, a sequence as well as text', t => {
  for (const text of ['\u001b[31mred', 'plain', '\u001b[?1hx']) {
    const scrollback = new Scrollback(1024)
    scrollback.append(Buffer.from(text))
    t.match(scrollback.screen().bytes.toString(), text, JSON.stringify(text))
  }
  t.end()
})

test('what a terminal would answer is told from what it draws', t => {
  for (const asking of [
    '\u001b[6n',
    '\u001b[?6n',
    '\u001b[c',
    '\u001b[>c',
    '\u001b[=0c',
    '\u001b[18t',
    '\u001b[x',
    '\u001b[?2026$p',
    '\u001b[?u',
    '\u001b[>q',
    '\u001bZ',
    '\u001b]11;?\u0007',
    '\u001b]52;c;aGk=\u0007',
    '\u001bP+q544e\u001b\\'
  ])
    t.ok(asksTerminal(asking), JSON.stringify(asking))
  for (const drawing of [
    '\u001b[31m',
    '\u001b[2J',
    '\u001b[H',
    '\u001b[?25h',
    '\u001b]0;what?\u0007',
    '\u001b]8;;http://example.com\u001b\\',
    '\u001b7',
    '\u001b[>1u',
    '\u001b[3 q'
  ])
    t.notOk(asksTerminal(drawing), JSON.stringify(drawing))
  t.end()
})

test('the last part is kept by its place, whatever is appended', t => {
  const kept = new Scrollback(64 * 1024)
  t.equal(kept.read(0, 10).length, 0)
  let all = ''
  for (let n = 0; n < 3000; n++) {
    const piece = `${n} `.repeat((n * 7) % 90)
    all += piece
    kept.append(Buffer.from(piece))
  }
  t.equal(kept.end, all.length)
  t.equal(kept.end - kept.start, 64 * 1024)
  let read = ''
  for (let at = kept.start; at < kept.end; ) {
    const piece = kept.read(at, 1000)
    read += piece.toString()
    at += piece.length
  }
  t.equal(read, all.slice(-64 * 1024))
  kept.append(Buffer.alloc(300_000, 'y'))
  t.equal(kept.read(kept.start, 10).toString(), 'yyyyyyyyyy')
  t.equal(kept.end, all.length + 300_000)
  t.end()
})

test('a screen is shown again without what asks for answers, rings, or began before what is kept', t => {
  const small = new Scrollback(1000)
  small.append(Buffer.from('one\u0007\u001b[6n\u0005two\u001b[1mthree\u001b[?1h'))
  t.equal(small.screen().bytes.toString(), '\u001bconetwo\u001b[1mthree\u001b[?1h')
  t.notOk(small.screen().isAlternate)
  small.append(Buffer.from('\u001b[3'))
  t.equal(
    small.screen().bytes.toString(),
    '\u001bconetwo\u001b[1mthree\u001b[?1h\u001b[3',
    'what is not whole yet goes on live'
  )

  const cut = new Scrollback(100)
  cut.append(Buffer.from(`\u001b[?1049h\u001b[?25l\u001b[38;5;${'1'.repeat(10)}`))
  cut.append(Buffer.from(`m${'z'.repeat(97)}`))
  const { bytes, isAlternate } = cut.screen()
  t.ok(isAlternate)
  t.equal(bytes.toString(), `\u001bc\u001b[?1049h\u001b[?25l${'z'.repeat(97)}`)

  const euro = new Scrollback(4)
  euro.append(Buffer.from('€€ab'))
  t.equal(euro.screen().bytes.toString(), '\u001bcab')
  t.end()
})

test('what fills the scrollback with sequences alone is read in time', t => {
  const kept = new Scrollback(128 * 1024)
  const before = process.cpuUsage()
  const piece = Buffer.from('\u001b[38;5;1m\u001b]0;x'.repeat(5000))
  for (let n = 0; n < 100; n++) kept.append(piece)
  kept.screen()
  const { user } = process.cpuUsage(before)
  t.ok(user < 5_000_000, `${user} µs for ${100 * piece.length} bytes`)
  t.end()
})

/** What a terminal answers that reads sequences as xterm.js does: obeys control characters within one, and knows those of one character. */
const answered = (shown: Buffer): number => {
  const text = shown.toString()
  let count = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\u0005') count++
    const rest = text.slice(at)
    const begins = /^(?:\u001b\[|\u009b)/.exec(rest)
    if (begins === null) continue
    const inner = rest.slice(begins[0].length).replace(/[\0-\u001a\u001c-\u001f\u007f-\u009f]/g, '')
    if (/^[?>=]?[\d;]*[nc]/.test(inner)) count++
  }
  return count + (/\u001b\][^\u0007\u001b]*;\?/.exec(text)?.length ?? 0) + text.split('\u001b]52;').length - 1
}

test('no way of writing a question makes a terminal answer when the screen is shown again', t => {
  const ask = '\u001b[6n'
  for (const hidden of [
    '\u001b]0;x\u001b[6n',
    '\u001b]0;x\u001b\u001b[6n',
    '\u001bPx\u001b[6n',
    `\u001b[6${ask}n`,
    `\u001b${ask}[6n`,
    `\u001b]5${ask}2;c;aGk=\u0007`,
    `\u001b[\u00056n`,
    '\u001b[6\0n',
    '\u001b[6\u007fn',
    '\u001b\0[6n',
    '\u001b[\u00806n',
    `\u001b[${'0'.repeat(5000)}6n`,
    `\u001b]4;${'1;#aaaaaa;'.repeat(1000)}9;?\u0007`,
    `\u001b]4;${'1;#aaaaaa;'.repeat(10)}9;?\u0007`,
    '\u001b(]\u0005\u0007',
    '\u009b6n',
    '\u001b]0;x\u009c\u009b6n\u0007',
    '\u00c2'
  ]) {
    const kept = new Scrollback(32 * 1024)
    kept.append(Buffer.from(`before ${hidden} behind\u001b[0m`))
    const { bytes } = kept.screen()
    t.equal(answered(bytes), 0, JSON.stringify(hidden.slice(0, 40)))
    t.match(bytes.toString(), /before/)
  }
  const split = new Scrollback(1024)
  split.append(Buffer.concat([Buffer.from([0xc2]), Buffer.from(ask), Buffer.from([0x9b]), Buffer.from('6n')]))
  t.equal(answered(split.screen().bytes), 0, 'the two bytes of one with a question between them')
  t.end()
})

test('what draws is shown again as it was written', t => {
  const drawn =
    'é ° ½ \u001b[38;2;1;2;3;48;2;4;5;6mx\u001b(0q\u001b(B\u001b]0;café\u0007\u001b]8;;http://a.example/?b\u001b\\link\u001b]8;;\u001b\\\u001b#8'
  const kept = new Scrollback(1024)
  kept.append(Buffer.from(drawn))
  t.equal(kept.screen().bytes.toString(), `\u001bc${drawn}`)
  t.end()
})
