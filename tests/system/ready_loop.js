// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The same loop as ready_loop.py's, of node: ready_loop.js ADDRESS CNT
const dgram = require('dgram');
const [address, cnt] = process.argv.slice(2);
let bound = 0;
for (let i = 0; i < cnt; i++) {
	const s = dgram.createSocket('udp4');
	s.on('message', (data, from) => s.send(data, from.port, from.address));
	s.bind(8000 + i, address, () => {
		if (++bound == cnt)
			console.log('ready');
	});
}
