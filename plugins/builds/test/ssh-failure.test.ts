import { test } from 'tap'
import { sshProblem } from '../git/ssh-failure.js'

const attempt = {
  repo: 'git@git.example.com:a/b.git',
  branch: null,
  hasCredentials: true,
  memoryMib: 1,
  spaceMib: 1,
  host: 'git.example.com',
  publicKey: 'ssh-ed25519 AAAA busbar:web',
  knownFingerprint: 'SHA256:known'
}
const end = `fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists.
`

test('what ssh and hosts of repositories say when they refuse is told with what helps', async t => {
  const cases: ReadonlyArray<readonly [stderr: string, code: string, message?: RegExp]> = [
    ['git@github.com: Permission denied (publickey).\r\n', 'E_SOURCE_KEY_REFUSED', /AAAA busbar:web$/],
    ['ERROR: Repository not found.\n', 'E_SOURCE_NOT_FOUND', /AAAA busbar:web$/],
    [
      'remote: ERROR: The project you were looking for could not be found or you do not have permission to view it.\n',
      'E_SOURCE_NOT_FOUND'
    ],
    ["fatal: '/srv/x.git' does not appear to be a git repository\n", 'E_SOURCE_NOT_FOUND'],
    ['ssh: connect to host 192.0.2.1 port 22: Connection timed out\r\n', 'E_SOURCE_UNREACHABLE', /timed out/],
    ['kex_exchange_identification: Connection closed by remote host\n', 'E_SOURCE_UNREACHABLE'],
    ['Connection reset by 192.0.2.1 port 22\n', 'E_SOURCE_UNREACHABLE'],
    ['No user exists for uid 12345\r\n', 'E_SOURCE_SSH_USER', /uid 12345.*BUSBAR_UID/],
    ["fatal: couldn't find remote ref HEAD\n", 'E_SOURCE_EMPTY'],
    [
      'Unable to negotiate with 192.0.2.1 port 22: no matching host key type found. Their offer: ssh-dss\n',
      'E_SOURCE_GIT',
      /their offer: ssh-dss/i
    ],
    [
      'the disk on the other side is on fire\n',
      'E_SOURCE_GIT',
      /failed: the disk on the other side is on fire/
    ]
  ]
  for (const [stderr, code, message = /./] of cases)
    t.match(sshProblem(stderr + end, attempt), { code, message }, stderr)
})

test('a changed host key is one only where a key was known', async t => {
  const shown = `SHA256:${'a'.repeat(43)}`
  const stderr = `@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
The fingerprint for the ED25519 key sent by the remote host is
${shown}.
Host key verification failed.
`
  t.match(sshProblem(stderr + end, attempt), {
    code: 'E_SOURCE_HOST_KEY',
    message: new RegExp(`${shown}.*SHA256:known`)
  })
  t.match(sshProblem(`Host key verification failed.\r\n${end}`, attempt), { code: 'E_SOURCE_HOST_KEY' })
  t.match(sshProblem(stderr + end, { ...attempt, knownFingerprint: undefined }), { code: 'E_SOURCE_GIT' })
})
