import { test } from 'tap'
import { listRights, rightsMissed, rightsOfImage } from '../rollout/needed-rights.js'

test('official images that change their user are known by whatever name they are pulled', async t => {
  for (const name of [
    'redis',
    'redis:7',
    'library/redis:7-alpine',
    'docker.io/library/redis',
    'index.docker.io/redis:7',
    'public.ecr.aws/docker/library/redis:7',
    `redis@sha256:${'0'.repeat(64)}`
  ])
    t.equal(listRights(rightsOfImage(name)), 'CHOWN, DAC_OVERRIDE, SETUID and SETGID', name)
  t.equal(listRights(rightsOfImage('httpd:2.4')), 'SETUID and SETGID')
  for (const name of [
    'bitnami/redis:7',
    'ghcr.io/library/redis',
    'redis-stack',
    'node:20',
    'constructor',
    ''
  ])
    t.same(rightsOfImage(name), [], name)
})

test('what a program was refused is read from what it says', async t => {
  const said: ReadonlyArray<readonly [line: string, rights: readonly string[]]> = [
    ['chown: .: Operation not permitted', ['CHOWN']],
    [
      'error: failed switching to "redis": operation not permitted\nsetpriv: setgroups failed: Operation not permitted',
      ['SETUID', 'SETGID']
    ],
    [
      'nginx: [emerg] chown("/var/cache/nginx/client_temp", 101) failed (1: Operation not permitted)',
      ['CHOWN']
    ],
    ["chmod: changing permissions of '/data': Operation not permitted", ['FOWNER']],
    ['ping: permission denied (are you root?)', ['NET_RAW']],
    ['EACCES: permission denied, open "/data/x"', []]
  ]
  for (const [line, rights] of said) t.same(rightsMissed(`started\n${line}\nbye`), rights, line)
  t.equal(rightsMissed('chatting about permissions\nready'), undefined)
})
