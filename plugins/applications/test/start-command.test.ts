import { test } from 'tap'
import { parseStartCommand, wordsOf } from '../start-command.js'

test('a start command is split into words as a shell splits them', async t => {
  const words = (text: string, expected: readonly string[]) => t.same(wordsOf(text), expected, text)
  words('node server.js', ['node', 'server.js'])
  words('  node\tserver.js  --port=80 ', ['node', 'server.js', '--port=80'])
  words(`sh -c 'cd /app && exec ./run "$HOME"'`, ['sh', '-c', 'cd /app && exec ./run "$HOME"'])
  words(`echo "two words" 'it'"'"'s' a" "b "" ''`, ['echo', 'two words', "it's", 'a b', '', ''])
  words('echo a\\ b \\$HOME "\\$x \\"q\\" \\\\ \\n"', ['echo', 'a b', '$HOME', '$x "q" \\ \\n'])
  words('gunicorn app:app --bind=*:80 ~ [::] #x {a}', [
    'gunicorn',
    'app:app',
    '--bind=*:80',
    '~',
    '[::]',
    '#x',
    '{a}'
  ])
  words(`echo 'one\ntwo'`, ['echo', 'one\ntwo'])
  words('node \\\n  server\\\n.js', ['node', 'server.js'])
  words('größe 🚀', ['größe', '🚀'])
})

test('what only a shell would understand is refused, and how to have one is said', async t => {
  const refused = (text: string, reason: RegExp) =>
    t.throws(
      () => parseStartCommand(text),
      { status: 400, code: 'E_APPLICATION_INVALID', message: reason, details: { field: 'start_command' } },
      text
    )
  for (const [text, sign] of [
    ['a && b', '&'],
    ['a | b', '|'],
    ['a; b', ';'],
    ['a > /tmp/x', '>'],
    ['a < b', '<'],
    ['echo $HOME', '$'],
    ['echo "$HOME"', '$'],
    ['echo `id`', '`'],
    ['echo "`id`"', '`'],
    ['(a)', '(']
  ] as const) {
    refused(text, new RegExp(`start_command .*without a shell.*\\${sign}.*sh -c '`))
  }
  refused('a\nb', /start_command .*line break/)
  refused("echo 'a", /start_command .*' that is not closed/)
  refused('echo "a', /start_command .*" that is not closed/)
  refused('echo a\\', /start_command .*ends with a backslash/)
  refused('PORT=80 node server.js', /start_command .*begins with PORT=.*env PORT=/)
  refused('"" x', /start_command .*names no program/)
  refused('\u0007', /start_command .*control characters/)
})

test('a blank start command is none, and another is kept as it was written', async t => {
  for (const blank of [null, '', '  ']) t.equal(parseStartCommand(blank), null)
  t.equal(parseStartCommand(' node  "a b" '), 'node  "a b"')
})
