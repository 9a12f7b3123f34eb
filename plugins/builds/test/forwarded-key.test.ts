import { execFileSync } from 'node:child_process'
import { test } from 'tap'
import { mountsSsh } from '../dockerfile/ssh-mounts.js'
import { buildkitProgram } from '../engines/buildkit-program.js'
import { dockerdProgram } from '../engines/dockerd-program.js'
import { makeOpenSshKey } from '../ssh/openssh-key.js'

const bare = {
  directory: '/var/lib/builder/work/1',
  file: 'Dockerfile',
  buildArgs: {},
  secrets: {},
  noCache: false,
  bases: [],
  missing: []
}

test('a key for SSH comes by a variable and a pipe: no argument has it, and the client none of the variable', t => {
  const sshKey = makeOpenSshKey('busbar:web').privateKey
  for (const program of [buildkitProgram, dockerdProgram]) {
    const { argv, env } = program.build({ ...bare, sshKey })
    t.ok(argv.join(' ').includes('--ssh default=/dev/fd/3'), program.name)
    t.notMatch(argv.join(' '), /PRIVATE|b3BlbnNzaC/)
    t.equal(env.BUSBAR_SSH_KEY, sshKey)
    const without = program.build(bare)
    t.notMatch(without.argv.join(' '), /--ssh|fd\/3/)
    t.notOk('BUSBAR_SSH_KEY' in without.env)
    // The client in the place of which the file is read.
    const [shell = '', ...rest] = argv.slice(0, 4)
    const read = execFileSync(shell, [...rest, 'sh', '-c', 'cat /dev/fd/3; env'], {
      env: { ...env, PATH: process.env.PATH ?? '' }
    })
    t.ok(String(read).startsWith(sshKey))
    t.notMatch(String(read).slice(sshKey.length + 1), /BUSBAR_SSH_KEY|PRIVATE/)
  }
  t.end()
})

test('a Dockerfile says whether its steps may mount a key for SSH', t => {
  for (const text of [
    'RUN --mount=type=ssh git clone x',
    'RUN --mount=id=default,type=ssh,required=true x',
    'RUN \\\n  --mount=type=cache,target=/x \\\n  --mount=type=ssh x',
    'RUN --mount="type=ssh" x'
  ])
    t.ok(mountsSsh(`FROM node:20\n${text}\n`), text)
  for (const text of [
    'RUN --mount=type=secret,id=ssh x',
    'RUN ssh x',
    '# RUN --mount=type=ssh x',
    'RUN echo type=ssh'
  ])
    t.notOk(mountsSsh(`FROM node:20\n${text}\n`), text)
  t.end()
})
