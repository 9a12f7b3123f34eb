/**
 * Of networks that a machine is in, or of no network at all (RFC 6890 and the registries after it): loopback, private, shared,
 * link-local, documentation, multicast, reserved, and what leads to IPv4 by way of IPv6. Not the form of an IPv4 address in IPv6
 * (`::ffff:0:0/96`), which is no address of its own: as a range it would be all of IPv4.
 */
export const privateRanges: { readonly ipv4: readonly string[]; readonly ipv6: readonly string[] } = {
  ipv4: [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/4',
    '240.0.0.0/4'
  ],
  ipv6: [
    '::/96',
    '::ffff:0:0:0/96',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '100::/64',
    '2001::/32',
    '2001:db8::/32',
    '2002::/16',
    'fc00::/7',
    'fe80::/10',
    'fec0::/10',
    'ff00::/8'
  ]
}
