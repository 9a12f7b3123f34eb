import { test } from 'tap'
import { hostName, knownHostsLine, readKnownHosts } from '../ssh/host-key.js'

const blob = 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl'

test('the key of a host is read from what ssh has written of it', async t => {
  const text = `other.example ssh-rsa AAAA\nhub.example ssh-ed25519 ${blob}\n`
  t.same(readKnownHosts(text, 'hub.example'), {
    host: 'hub.example',
    key: `ssh-ed25519 ${blob}`,
    fingerprint: 'SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU'
  })
  t.equal(
    knownHostsLine({ host: '[hub.example]:2222', key: 'ssh-rsa AAAA' }),
    '[hub.example]:2222 ssh-rsa AAAA\n'
  )
  t.equal(hostName({ host: 'hub.example', port: 22 }), 'hub.example')
  t.equal(hostName({ host: 'hub.example', port: 2222 }), '[hub.example]:2222')
})

test('what is cut off, of another host or no key is none', async t => {
  for (const text of [
    '',
    'hub.example',
    'hub.example ssh-rsa',
    'hub.example ssh-rsa A-A',
    `other ssh-rsa ${blob}`
  ])
    t.equal(readKnownHosts(text, 'hub.example'), undefined, text)
})
