import { test } from 'tap'
import { growthFault } from '../../../lab/growth.js'
import { isFrontEndSetting, syntaxOf, withoutSyntax } from '../engines/dockerfile-syntax.js'

/** As BuildKit finds a front-end: see `DetectSyntax` in its `frontend/dockerfile/parser`. */
function frontEndOf(text: string): string | null {
  const all = text.replace(/^\uFEFF/, '').split('\n')
  const lines = all[0]?.startsWith('#!') ? all.slice(1) : all
  for (const mark of ['#', '//']) {
    for (const line of lines) {
      const found = new RegExp(`^${mark}\\s*([a-zA-Z][a-zA-Z0-9]*)\\s*=\\s*(.+?)\\s*$`).exec(line)
      if (found === null || !['syntax', 'escape', 'check'].includes(found[1]?.toLowerCase() ?? '')) break
      if (found[1]?.toLowerCase() === 'syntax') return found[2] ?? null
    }
  }
  try {
    return JSON.parse(lines.join('\n')).syntax ?? null
  } catch {
    return null
  }
}

const evil = 'docker.io/evil/fe:1'
const from = 'FROM busybox\nRUN echo'

void test('no front-end is found in a Dockerfile, however it is named', t => {
  for (const head of [
    `# syntax=${evil}`,
    `#syntax = ${evil}`,
    `# syntax=${evil}\r`,
    `#\t\u000bSyNtAx\t=\t${evil}`,
    `#${' '.repeat(1100)}syntax=${evil}`,
    `// syntax=${evil}`,
    `#!/usr/bin/env docker\n# syntax=${evil}`,
    `#!/usr/bin/env docker\n// syntax=${evil}`,
    `\uFEFF# syntax=${evil}`,
    `# escape=\`\n# syntax=${evil}`,
    `# check=skip=all\n# escape=\`\r\n# syntax=${evil}`
  ]) {
    const text = `${head}\n${from}`
    t.equal(frontEndOf(text), evil, `it is there: ${JSON.stringify(head)}`)
    const clean = withoutSyntax(text)
    t.equal(frontEndOf(clean), null, JSON.stringify(clean))
    t.equal(clean.split('\n').length, text.split('\n').length, 'lines keep their numbers')
    t.ok(clean.endsWith(`\n${from}`))
  }
  for (const text of [`{"syntax":"${evil}"}`, `\n{"syntax":"${evil}"}`, `\uFEFF{\n"syntax":"${evil}"}`])
    t.equal(frontEndOf(withoutSyntax(text)), null, text)
  t.end()
})

void test('the character that escapes stays what it was, and what is no directive stays as it is', t => {
  t.equal(withoutSyntax(`# syntax=x\n# escape=\`\n${from}`), `# escape=\`\n#\n${from}`)
  t.equal(withoutSyntax(`# escape=\`\n${from}`), `# escape=\`\n${from}`)
  t.equal(withoutSyntax(`# escape=\`\nFROM \`\n# syntax=x`), `# escape=\`\nFROM \`\n# syntax=x`)
  t.equal(withoutSyntax(`${from}\n# syntax=x`), `${from}\n# syntax=x`)
  t.equal(withoutSyntax(`# a word\n# syntax=x\n${from}`), `#\n# syntax=x\n${from}`)
  t.end()
})

void test('the log can name the front-end that is not used', t => {
  t.equal(syntaxOf(`# syntax=docker/dockerfile:1\r\n${from}`), 'docker/dockerfile:1')
  t.equal(syntaxOf(`# escape=\`\n// syntax = x \n${from}`), 'x')
  t.equal(syntaxOf(`${from}\n# syntax=x`), null)
  t.end()
})

void test('settings of a front-end are no build arguments', t => {
  t.ok(isFrontEndSetting('BUILDKIT_SYNTAX') && isFrontEndSetting('buildkit_inline_cache'))
  t.notOk(isFrontEndSetting('NODE_ENV'))
  t.end()
})

void test('a Dockerfile is read in linear time', async t => {
  const texts = [
    (size: number) => `# ${'='.repeat(size)}`,
    (size: number) => '# a=b\n'.repeat(size / 6),
    (size: number) => `#${' '.repeat(size)}`
  ]
  for (const text of texts) t.equal(await growthFault(1_000_000, size => withoutSyntax(text(size))), null)
})
