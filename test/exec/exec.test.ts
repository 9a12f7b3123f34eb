import { spawn } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { cutMark, type ExecOptions, isProblem } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { createExec } from '../../core/exec/exec.js'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'

const log = createLog({ level: 'silent', format: 'json', redactor: createRedactor() })
const exec = createExec({ log })
const sh = (script: string, options: Partial<ExecOptions> = {}) =>
  exec.run(['/bin/sh', '-c', script], { timeoutMs: 10_000, ...options })

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
async function isGone(pid: number): Promise<boolean> {
  for (let n = 0; n < 50; n++) {
    if (!isAlive(pid)) return true
    // A container without an init never reaps orphans: a zombie is as good as gone.
    const state = await readFile(`/proc/${pid}/stat`, 'utf8').then(
      text => text.split(') ')[1]?.[0],
      () => 'X'
    )
    if (state === 'Z' || state === 'X') return true
    await wait(20)
  }
  return false
}
async function problemOf(run: Promise<unknown>): Promise<string> {
  return await run.then(
    () => 'none',
    error => (isProblem(error) ? `${error.code} ${error.message}` : String(error))
  )
}

test('output, exit code and input pass through', async t => {
  const result = await sh('cat; echo err >&2; exit 3', { input: 'in' })
  t.same(result, {
    exitCode: 3,
    signal: null,
    stdout: 'in',
    stderr: 'err\n',
    truncated: false,
    timedOut: false
  })
})

test('a program that does not read its input does no harm', async t => {
  t.equal((await sh('exit 0', { input: 'x'.repeat(1_000_000) })).exitCode, 0)
})

test('the environment is not inherited', async t => {
  process.env.BUSBAR_TEST_SECRET = 'leak'
  t.teardown(() => {
    delete process.env.BUSBAR_TEST_SECRET
  })
  const { stdout } = await exec.run(['env'], { timeoutMs: 5000, env: { OWN: 'yes' } })
  t.match(stdout, /^OWN=yes$/m)
  t.match(stdout, /^PATH=/m)
  // The test runner adds its own to every process, and Node hands on where it writes coverage.
  const inherited = Object.keys(process.env).filter(
    name => !/^(PATH|HOME|LANG|NODE_OPTIONS|NODE_V8_COVERAGE|_TAPJS_.*)$/.test(name)
  )
  t.ok(inherited.includes('BUSBAR_TEST_SECRET'))
  t.same(
    inherited.filter(name => stdout.split('\n').some(line => line.startsWith(`${name}=`))),
    []
  )
})

test('a program runs in the directory that is given, and its own settings go before those of the platform', async t => {
  t.equal((await sh('pwd', { cwd: '/usr' })).stdout, '/usr\n')
  t.equal((await sh('pwd')).stdout, `${process.cwd()}\n`)
  const { stdout } = await sh('echo "$HOME $LANG"', { env: { HOME: '/home', LANG: 'C.UTF-8' } })
  t.equal(stdout, '/home C.UTF-8\n')
  t.equal((await sh('echo "$HOME"')).stdout, `${process.env.HOME}\n`)
})

test('without a cap a mebibyte of each stream is kept, and that one of them is cut is said', async t => {
  const print = async (stdout: number, stderr: number) => {
    const result = await sh(`head -c ${stdout} /dev/zero; head -c ${stderr} /dev/zero >&2`)
    return [result.stdout.length, result.stderr.length, result.truncated]
  }
  const mebibyte = 1024 * 1024
  t.same(await print(mebibyte, mebibyte), [mebibyte, mebibyte, false])
  t.same(await print(mebibyte + 1, 1), [mebibyte, 1, true])
  t.same(await print(1, mebibyte + 1), [1, mebibyte, true])
})

test('a time limit that no timer takes is none that is over at once', async t => {
  t.match(await sh('sleep 0.2; echo ok', { timeoutMs: 2 ** 31 }), { stdout: 'ok\n', timedOut: false })
})

test('a signal that outlives a program has no listener of it left', async t => {
  const { signal } = new AbortController()
  await sh('exit 0', { signal })
  t.same(getEventListeners(signal, 'abort'), [])
})

test('a process that has left the group is not waited for, though it holds the output', async t => {
  const { exitCode, stdout } = await sh('setsid sleep 60 & echo $!')
  const pid = Number(stdout)
  t.teardown(() => process.kill(pid, 'SIGKILL'))
  t.equal(exitCode, 0)
  t.ok(isAlive(pid))
})

test('arguments reach the program as they are', async t => {
  const odd = ['$(id)', '; ls', '"\'', 'a b']
  const { stdout } = await exec.run(
    [process.execPath, '-p', 'JSON.stringify(process.argv.slice(1))', ...odd],
    { timeoutMs: 5000 }
  )
  t.same(JSON.parse(stdout), odd)
  t.match(await problemOf(exec.run(['echo', 'a\0b'], { timeoutMs: 1000 })), 'E_EXEC_ARGUMENT')
})

test('a missing program is named with the remedy, and told from a missing directory', async t => {
  t.match(
    await problemOf(exec.run(['no-such-program'], { timeoutMs: 1000 })),
    /E_EXEC_NOT_FOUND no-such-program .*install/
  )
  t.match(
    await problemOf(exec.run(['git'], { timeoutMs: 1000, env: { PATH: '/nowhere' } })),
    /E_EXEC_NOT_FOUND git .*apt-get install git/
  )
  t.match(
    await problemOf(exec.run(['git'], { timeoutMs: 1000, cwd: '/nowhere' })),
    /E_EXEC_DIRECTORY git .*\/nowhere/
  )
  t.match(
    await problemOf(exec.run(['true'], { timeoutMs: 1000, cwd: '/etc/passwd' })),
    /E_EXEC_DIRECTORY true .*\/etc\/passwd/
  )
  t.match(
    await problemOf(exec.run(['no-such-program'], { timeoutMs: 1000, cwd: '/' })),
    'E_EXEC_NOT_FOUND no-such-program'
  )
  t.match(await problemOf(exec.run(['/etc/passwd'], { timeoutMs: 1000 })), 'E_EXEC_DENIED')
  t.match(await problemOf(exec.run(['/etc/passwd'], { timeoutMs: 1000, cwd: '/' })), 'E_EXEC_DENIED')
  t.match(
    await problemOf(exec.run(['true', 'x'.repeat(4 * 1024 * 1024)], { timeoutMs: 1000 })),
    'E_EXEC_START true did not start: E2BIG'
  )
})

test('a gigabyte of output is read to the end and kept to the cap', async t => {
  const before = process.memoryUsage().rss
  const result = await sh('head -c 1073741824 /dev/zero; printf é >&2', {
    timeoutMs: 60_000,
    maxOutputBytes: 1000
  })
  t.match(result, { exitCode: 0, truncated: true, stderr: 'é' })
  t.equal(result.stdout.length, 1000)
  t.ok(process.memoryUsage().rss - before < 300 * 1024 * 1024)
})

test('a cut never leaves half a character', async t => {
  const { stdout, truncated } = await sh('printf éé', { maxOutputBytes: 3 })
  t.same({ stdout, truncated }, { stdout: 'é', truncated: true })
})

test('lines arrive while the program runs, whole and in order', async t => {
  const lines: string[] = []
  const result = await sh('printf "one\\r\\ntw"; sleep 0.1; printf "o\\n10%%\\r20%%\\n\\nlast"; echo e >&2', {
    onLine: (line, stream) => lines.push(`${stream} ${line}`)
  })
  t.same(
    lines.filter(line => line.startsWith('stdout')),
    ['stdout one', 'stdout two', 'stdout 20%', 'stdout ', 'stdout last']
  )
  t.ok(lines.includes('stderr e'))
  t.match(result.stdout, 'one\r\ntwo\n')
})

test('a line without end is cut, and no other begins in the middle of it', async t => {
  const lines: string[] = []
  await sh('head -c 100000 /dev/zero | tr "\\0" x; echo; echo next', { onLine: line => lines.push(line) })
  t.same(lines, [`${'x'.repeat(16 * 1024)}${cutMark}`, 'next'])
})

test('lines that have all come are handed on in turns with everybody else, and none is lost', async t => {
  let lines = 0
  let [now, most] = [0, 0]
  let isOver = false
  const next = (): void => {
    now = 0
    if (!isOver) setImmediate(next)
  }
  setImmediate(next)
  const { exitCode } = await sh('head -c 60000 /dev/zero | tr "\\0" "\\n"; exit 3', {
    onLine: () => {
      lines++
      most = Math.max(most, ++now)
      for (const end = performance.now() + 0.02; performance.now() < end; );
    }
  })
  isOver = true
  t.equal(exitCode, 3)
  t.equal(lines, 60_000)
  t.ok(most <= 5_000, `${most} lines in one turn of the event loop`)
})

test('an error of the listener ends the program and is handed on', async t => {
  await t.rejects(
    sh('echo a; sleep 60', {
      onLine: () => {
        throw new Error('stop')
      }
    }),
    { message: 'stop' }
  )
})

test('on time-out the whole group dies, whatever it ignores', async t => {
  const startedAt = performance.now()
  const result = await sh(
    `trap '' TERM; (trap '' TERM; (trap '' TERM; sleep 60 & echo $!; wait) & echo $!; wait) & echo $!; while :; do sleep 1; done`,
    { timeoutMs: 300 }
  )
  t.match(result, { timedOut: true, exitCode: null, signal: 'SIGKILL' })
  t.ok(performance.now() - startedAt < 30_000)
  const pids = result.stdout.trim().split('\n').map(Number)
  t.equal(pids.length, 3)
  for (const pid of pids) t.ok(await isGone(pid), `${pid} is gone`)
})

test('what a program leaves behind when it ends dies too, and does not hold the answer', async t => {
  const startedAt = performance.now()
  const { exitCode, stdout } = await sh(`(trap '' TERM HUP; sleep 60) & echo $!`)
  t.equal(exitCode, 0)
  t.ok(performance.now() - startedAt < 30_000)
  t.ok(await isGone(Number(stdout)))
  const silent = await sh('sleep 60 >/dev/null 2>&1 & echo $!')
  t.ok(await isGone(Number(silent.stdout)))
})

test('an abort ends it with the reason of the signal', async t => {
  const controller = new AbortController()
  let pid = 0
  const running = sh('echo $$; sleep 60', {
    signal: controller.signal,
    onLine: line => {
      pid = Number(line)
      controller.abort(new Error('cancelled'))
    }
  })
  await t.rejects(running, { message: 'cancelled' })
  t.ok(await isGone(pid))
  await t.rejects(sh('exit 0', { signal: controller.signal }), { message: 'cancelled' })
})

test('closing ends what runs and refuses what comes after', async t => {
  const own = createExec({ log })
  let pid = 0
  const running = own.run(['/bin/sh', '-c', 'echo $$; sleep 60'], {
    timeoutMs: 60_000,
    onLine: line => {
      pid = Number(line)
    }
  })
  const ended = problemOf(running)
  await until(() => pid !== 0, 'the program has begun')
  await own.close()
  t.ok(await isGone(pid))
  t.match(await ended, 'E_EXEC_START')
  t.match(await problemOf(own.run(['true'], { timeoutMs: 1000 })), 'E_EXEC_START')
})

test('when the platform exits its processes die with it', async t => {
  const program = `Promise.all([import('${href('../../core/exec/exec.ts')}'), import('${href('../../core/log/log.ts')}'), import('${href('../../core/log/redactor.ts')}')]).then(([e, l, r]) => {
    const exec = e.createExec({ log: l.createLog({ level: 'silent', format: 'json', redactor: r.createRedactor() }) })
    exec.run(['/bin/sh', '-c', "trap '' TERM; echo $$; while :; do sleep 1; done"], { timeoutMs: 60000, onLine: line => { process.stdout.write(line, () => process.exit(0)) } })
  })`
  const child = spawn(process.execPath, ['--import=tsx', '--conditions=busbar-source', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: join(import.meta.dirname, '../..')
  })
  let output = ''
  child.stdout.on('data', data => {
    output += data
  })
  await new Promise(resolve => child.on('close', resolve))
  t.match(output, /^\d+$/)
  t.ok(await isGone(Number(output)))
})

const href = (path: string) => new URL(path, import.meta.url).href

test('a server runs for as long as it is wanted', async t => {
  const abort = new AbortController()
  let isReady = false
  const running = sh('echo ready; exec sleep 60', {
    timeoutMs: Number.POSITIVE_INFINITY,
    signal: abort.signal,
    onLine: () => {
      isReady = true
    }
  })
  const ended = running.then(
    () => 'by itself',
    () => 'by the signal'
  )
  await until(async () => isReady, 'that it runs')
  abort.abort(new Error('enough'))
  t.equal(await ended, 'by the signal')
})
