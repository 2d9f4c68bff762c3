#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Daemons of all trades over a cable, and the clients that belong to them: on the kernel,
# and then under the library at the server's end, at the client's, and at both. What they
# say must be the same, and all of them end when they are told to.
# CASES and SERVERS_ALL are those of servers_lab.sh (make check-servers).
LAB_SEGMENTS=1
# who is nobody drives two interfaces with the memory that he may lock
export VMA_XDP_FRAMES=1024
. "${srcdir:-.}/tests/system/servers_lab.sh"

# Who carries it (carriers.sh). What is the kernel's by design:
# - One process drives an interface by AF_XDP: the second of two at once is the kernel's
#   (mosquitto's publisher beside the subscriber, all but one of the ncats).
# - A listener that processes share since a fork, and UDP that a child may read (lighttpd,
#   varnish, dnsmasq, nsd, tftpd, dovecot, exim, samba, rsync).
# - Who closes a connection leaves its TIME_WAIT to the kernel, which says the last word once
#   more. The peer's kernel answers that nobody knows it, if its end is ours, too. It shows
#   where connections are short, or few. So do resets of what has ended, as aria2 sends them,
#   and the first connection of a listener that blocks (sipp, tinyproxy).
# - Who ends behind what it has written leaves the rest to the kernel, and no line of a log
#   says so (logger, the clients of SNMP).
#
# program       ends    at the server's end             at the client's
programs='
mosquitto       all     ours                            0-65:INTERFACE_IN_USE,TIME_WAIT
rsync           all     0-5:EARLY,FORKS                 30-75:FORKS,TIME_WAIT
lighttpd        all     0-5:FORKS                       ours
stunnel         all     ours                            90-100:TIME_WAIT
varnish         all     0-10:FORKS,TIME_WAIT            ours
mariadb         all     ours                            ours
erlang          all     90-100                          90-100:TIME_WAIT
beanstalkd      all     ours                            ours
ncat            all     0-10:FORKS,INTERFACE_IN_USE     70-100:TIME_WAIT
dnsmasq         all     5-30:FORKS,HEIR                 75-95:TIME_WAIT
unbound         all     85-100                          75-95:TIME_WAIT
named           all     85-100                          75-95:TIME_WAIT
nsd             all     0-5:HEIR                        75-95:TIME_WAIT
tinyproxy       all     85-100:EARLY,TIME_WAIT          ours
tftpd           all     0-5:HEIR                        ours
slapd           all     ours                            ours
snmpd           all     75-100                          60-100
rsyslog         all     ours                            65-100
nghttp2         all     ours                            ours
turnserver      all     ours                            ours
sipp            all     85-100:EARLY,TIME_WAIT          85-100:TIME_WAIT
webrick         all     ours                            ours
zmq             all     ours                            ours
dovecot         all     0-5:FORKS                       ours
exim            all     0-10:EARLY,FORKS                ours
samba           all     0-5:FORKS                       ours
aria2           all     80-100                          ours
'
long=$(awk '{ print $1 }' <<<"$programs")

# await_udp PORT
await_udp() {
	wait_until is_bound $a "$1" || tail -3 "$work/words"
}
# serve_files: what the kernel's server in b has, for those that fetch from others. Over a
# cable of its own, since carriers.sh counts what b has by the other.
serve_files() {
	ip -n $a link show w0 >/dev/null 2>&1 || add_cable
	(in_ns $b - /usr/bin/python3 -m http.server 8000 --bind 10.79.0.2 \
		--directory "$work/html") >/dev/null 2>&1 &
	servers+=($!)
	wait_until ip netns exec $b curl -s -o /dev/null http://10.79.0.2:8000/
}
add_cable() {
	ip link add w0 netns $a type veth peer name w0 netns $b &&
		ip -n $a address add 10.79.0.1/24 dev w0 &&
		ip -n $b address add 10.79.0.2/24 dev w0 &&
		ip -n $a link set w0 up && ip -n $b link set w0 up && make_wire w0 &&
		ip netns exec $b ping -q -c 1 -W 2 10.79.0.1 >/dev/null
}
# bench URL: what ab says of requests on connections that stay and on others.
bench() {
	ask ab -q -n $((200 * times)) -c 10 "$1" | grep -E '^(Complete|Failed|Non-2xx)'
	ask ab -q -k -n $((200 * times)) -c 10 "$1" | grep -E '^(Complete|Failed|Non-2xx)'
}
make_certificate() {
	[ -e "$work/cert.pem" ] && return
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test \
		-keyout "$work/key" -out "$work/cert.pem" 2>/dev/null
	cat "$work/key" >>"$work/cert.pem"
}

# -- files and pages -----------------------------------------------------------------------

program_rsync() {
	cat >"$work/rsyncd.conf" <<-CONF
		use chroot = yes
		uid = nobody
		gid = nogroup
		max connections = 4
		lock file = $work/log/rsync.lock
		[files]
		path = $work/html
		[put]
		path = $work/log
		read only = no
	CONF
	serve rsync --daemon --no-detach --config "$work/rsyncd.conf" --address 10.78.0.1 --port 8730
	await_port 8730
	rm -rf "$work/got" "$work/log/put"
	ask rsync -a rsync://10.78.0.1:8730/files/ "$work/got"
	echo "status $?"
	diff -r "$work/html" "$work/got" && echo fetched
	ask rsync -r --bwlimit=20m "$work/html/" rsync://10.78.0.1:8730/put/put
	echo "status $?"
	diff -r "$work/html" "$work/log/put" && echo brought
	ask rsync rsync://10.78.0.1:8730/missing 2>&1
	echo "status $?"
}
start_lighttpd() {
	cat >"$work/lighttpd.conf" <<-CONF
		server.bind = "10.78.0.1"
		server.port = 8003
		server.document-root = "$work/html"
		server.errorlog = "$work/log/lighttpd.log"
		server.username = "nobody"
		server.groupname = "nogroup"
		index-file.names = ("index.html")
		$1
	CONF
	serve lighttpd -D -f "$work/lighttpd.conf"
	await_port 8003
}
program_lighttpd() {
	start_lighttpd 'server.max-worker = 2'
	bench http://10.78.0.1:8003/
	ask curl -s http://10.78.0.1:8003/big | cmp - "$work/html/big" && echo whole
}
program_stunnel() {
	make_certificate
	cat >"$work/stunnel.conf" <<-CONF
		foreground = yes
		pid =
		cert = $work/cert.pem
		setuid = nobody
		setgid = nogroup
		[pages]
		accept = 10.78.0.1:8443
		connect = 10.79.0.2:8000
	CONF
	serve_files
	serve stunnel4 "$work/stunnel.conf"
	await_port 8443
	bench https://10.78.0.1:8443/
	ask curl -sk https://10.78.0.1:8443/big | cmp - "$work/html/big" && echo whole
}
program_varnish() {
	serve_files
	serve varnishd -F -j none -a 10.78.0.1:8004 -b 10.79.0.2:8000 -n "$work/log/varnish"
	await_port 8004
	bench http://10.78.0.1:8004/
	ask curl -s http://10.78.0.1:8004/big | cmp - "$work/html/big" && echo whole
}
program_tinyproxy() {
	cat >"$work/tinyproxy.conf" <<-CONF
		Port 8888
		Listen 10.78.0.1
		User nobody
		Group nogroup
		LogFile "$work/log/tinyproxy.log"
		MaxClients 50
		ConnectPort 8000
	CONF
	serve_files
	serve tinyproxy -d -c "$work/tinyproxy.conf"
	await_port 8888
	ask curl -s -x 10.78.0.1:8888 http://10.79.0.2:8000/big | cmp - "$work/html/big" && echo whole
	ask curl -s -p -x 10.78.0.1:8888 http://10.79.0.2:8000/big | cmp - "$work/html/big" && echo tunnel
	ask ab -q -n $((100 * times)) -c 10 -X 10.78.0.1:8888 http://10.79.0.2:8000/ |
		grep -E '^(Complete|Failed|Non-2xx)'
}
program_nghttp2() {
	make_certificate
	serve nghttpd -a 10.78.0.1 -d "$work/html" -n 2 8444 "$work/key" "$work/cert.pem"
	await_port 8444
	ask h2load -n $((400 * times)) -c 10 -m 10 -t 2 https://10.78.0.1:8444/index.html | grep -E '^(requests|status)'
	ask h2load -n 20 -c 4 -m 4 https://10.78.0.1:8444/big | grep -E '^(requests|status)'
}
program_aria2() {
	start_lighttpd ''
	rm -rf "$work/got"
	ask aria2c -q -x 8 -s 8 -k 1M --file-allocation=none -d "$work/got" http://10.78.0.1:8003/big
	echo "status $?"
	cmp "$work/got/big" "$work/html/big" && echo whole
}
program_tftpd() {
	serve in.tftpd -L -s -c -a 10.78.0.1:6900 -u nobody "$work/html"
	await_udp 6900
	rm -f "$work/got"
	for i in 1 2 3; do
		ask tftp -m binary 10.78.0.1 6900 -c get big "$work/got$i"
		cmp "$work/got$i" "$work/html/big" && echo whole
		rm -f "$work/got$i"
	done
	ask tftp -m binary 10.78.0.1 6900 -c get missing "$work/got" 2>&1 | tr E e
}
program_samba() {
	mkdir -p "$work/samba"
	cat >"$work/smb.conf" <<-CONF
		[global]
		interfaces = 10.78.0.1
		bind interfaces only = yes
		smb ports = 4450
		map to guest = bad user
		guest account = nobody
		private dir = $work/samba
		lock directory = $work/samba
		state directory = $work/samba
		cache directory = $work/samba
		pid directory = $work/samba
		ncalrpc dir = $work/samba/rpc
		log file = $work/log/samba.log
		load printers = no
		disable spoolss = yes
		[files]
		path = $work/html
		guest ok = yes
	CONF
	serve smbd -F --no-process-group -s "$work/smb.conf"
	await_port 4450
	rm -rf "$work/got"
	ask smbclient -s "$work/smb.conf" -N -p 4450 //10.78.0.1/files -c "get big $work/got" 2>/dev/null
	echo "status $?"
	cmp "$work/got" "$work/html/big" && echo whole
	ask smbclient -s "$work/smb.conf" -N -p 4450 //10.78.0.1/missing -c ls 2>&1
}

# -- names ---------------------------------------------------------------------------------

# dig_all PORT: names of test., by datagrams and by connections.
dig_all() {
	local way
	seq $((50 * times)) | sed 's/.*/host&.test A/' >"$work/names"
	for way in +notcp +tcp; do
		ask dig $way +tries=2 +time=5 -p "$1" @10.78.0.1 -f "$work/names" +short >"$work/answers"
		sort -u "$work/answers" | grep -c '^10\.9\.8\.'
		grep -v '^10\.9\.8\.' "$work/answers"
	done
	ask dig +tcp +keepopen -p "$1" @10.78.0.1 host1.test host2.test host3.test +short
	ask dig -p "$1" @10.78.0.1 missing.test | grep -o 'status: [A-Z]*'
}
# host_lines FORMAT: a line for each of the names.
host_lines() {
	local i
	for i in $(seq $((50 * times))); do
		# shellcheck disable=SC2059
		printf -- "$1\n" "$i" $((i % 250 + 1))
	done
}
write_zone() {
	{
		echo '$TTL 60'
		echo '@ SOA ns. root. 1 60 60 60 60'
		echo '@ NS ns.'
		host_lines 'host%s A 10.9.8.%s'
	} >"$work/test.zone"
	chmod a+r "$work/test.zone"
}
program_dnsmasq() {
	serve dnsmasq -k -C /dev/null -p 5300 -a 10.78.0.1 --bind-interfaces -R -h -u nobody --pid-file= \
		$(host_lines '--host-record=host%s.test,10.9.8.%s')
	await_port 5300
	dig_all 5300
}
program_unbound() {
	cat >"$work/unbound.conf" <<-CONF
		server:
		  interface: 10.78.0.1@5301
		  do-daemonize: no
		  num-threads: 2
		  so-reuseport: yes
		  chroot: "$work/log"
		  directory: "$work/log"
		  username: "nobody"
		  pidfile: ""
		  logfile: ""
		  use-syslog: no
		  access-control: 10.78.0.0/24 allow
		  local-zone: "test." static
		$(host_lines '  local-data: "host%s.test. A 10.9.8.%s"')
		remote-control:
		  control-enable: no
	CONF
	serve unbound -d -c "$work/unbound.conf"
	await_port 5301
	dig_all 5301
}
program_named() {
	write_zone
	cat >"$work/named.conf" <<-CONF
		options {
			directory "$work/log"; pid-file none; session-keyfile none;
			listen-on port 5302 { 10.78.0.1; }; listen-on-v6 { none; };
			recursion no; dnssec-validation no; allow-query { any; };
		};
		controls { };
		zone "test" { type primary; file "$work/test.zone"; };
	CONF
	serve named -f -u nobody -n 2 -c "$work/named.conf"
	await_port 5302
	# it listens before it has read its zone
	wait_until has_zone 5302
	dig_all 5302
	ask dig -p 5302 @10.78.0.1 AXFR test +short | wc -l
}
has_zone() {
	ip netns exec $b dig -p "$1" @10.78.0.1 test SOA | grep -q NOERROR
}
program_nsd() {
	write_zone
	cat >"$work/nsd.conf" <<-CONF
		server:
		  ip-address: 10.78.0.1@5303
		  server-count: 2
		  reuseport: yes
		  username: nobody
		  chroot: ""
		  zonesdir: "$work"
		  database: ""
		  pidfile: "$work/log/nsd.pid"
		  xfrdfile: "$work/log/xfrd.state"
		  xfrdir: "$work/log"
		  zonelistfile: "$work/log/zone.list"
		remote-control:
		  control-enable: no
		zone:
		  name: test
		  zonefile: test.zone
		  provide-xfr: 10.78.0.0/24 NOKEY
	CONF
	serve nsd -d -c "$work/nsd.conf"
	await_port 5303
	dig_all 5303
	ask dig -p 5303 @10.78.0.1 AXFR test +short | wc -l
}

# -- messages and data ---------------------------------------------------------------------

program_mosquitto() {
	local listener
	cat >"$work/mosquitto.conf" <<-CONF
		listener 1883 10.78.0.1
		allow_anonymous true
		user nobody
	CONF
	serve mosquitto -c "$work/mosquitto.conf"
	await_port 1883
	ask mosquitto_pub -h 10.78.0.1 -t topic -r -m first
	ask mosquitto_sub -h 10.78.0.1 -t topic -q 2 -C $((100 * times + 1)) -W 30 >"$work/heard" &
	listener=$!
	wait_until grep -q first "$work/heard"
	seq $((100 * times)) | ask mosquitto_pub -h 10.78.0.1 -t topic -q 2 -l
	wait $listener
	echo "status $?"
	md5sum <"$work/heard"
}
program_mariadb() {
	local dir=$work/mariadb tables="--mysql-host=10.78.0.1 --mysql-port=3307 --mysql-user=t
		--mysql-db=test --tables=2 --table-size=500"
	[ -d "$dir" ] || {
		mkdir "$dir" && chown mysql "$dir"
		mariadb-install-db --no-defaults --user=mysql --datadir="$dir" --auth-root-authentication-method=normal >/dev/null 2>&1
		# a statement in each line
		printf '%s;\n' 'create database if not exists test' 'create or replace user t' \
			'grant all on *.* to t' >"$work/init.sql"
	}
	serve mariadbd --no-defaults --user=mysql --datadir="$dir" --socket="$dir/s" --port=3307 \
		--bind-address=10.78.0.1 --innodb-use-native-aio=0 --init-file="$work/init.sql"
	await_port 3307
	ask sysbench oltp_read_write $tables prepare | grep -c Creating
	ask sysbench oltp_read_write $tables --threads=4 --events=$((100 * times)) --time=0 run |
		grep -oE 'transactions: +[0-9]+|reconnects: +[0-9]+'
	ask sysbench oltp_read_write $tables cleanup | grep -c Dropping
}
program_beanstalkd() {
	serve beanstalkd -l 10.78.0.1 -p 11300 -u nobody
	await_port 11300
	{ for i in $(seq 100); do printf 'put 0 0 10 3\r\n%03d\r\n' $i; done; printf 'quit\r\n'; } |
		ask ncat 10.78.0.1 11300 | md5sum
	{ for i in $(seq 100); do printf 'reserve\r\ndelete %d\r\n' $i; done; printf 'quit\r\n'; } |
		ask ncat 10.78.0.1 11300 | md5sum
}
program_ncat() {
	serve ncat -l -k -e /bin/cat 10.78.0.1 7030
	serve ncat -l -k --ssl -c 'tr a-z A-Z' 10.78.0.1 7031
	serve ncat -u -l -k -e /bin/cat 10.78.0.1 7032
	await_port 7030
	await_port 7031
	await_udp 7032
	for i in 1 2 3 4 5; do
		seq 1000 | ask ncat 10.78.0.1 7030 | md5sum
		seq 1000 | sed 's/$/ a/' | ask ncat --ssl 10.78.0.1 7031 | md5sum
	done
	echo datagram | ask ncat -u -i 2 10.78.0.1 7032 2>/dev/null
}
program_erlang() {
	cat >"$work/echo.erl" <<-'ERL'
		main(["serve"]) ->
			{ok, L} = gen_tcp:listen(7040, [binary, {ip, {10,78,0,1}}, {active, once}, {packet, line},
				{reuseaddr, true}, {backlog, 50}]),
			accept(L);
		main(["ask"]) ->
			Self = self(),
			[spawn(fun() -> Self ! talk(N) end) || N <- lists:seq(1, 20)],
			All = [receive X -> X end || _ <- lists:seq(1, 20)],
			io:format("~p~n", [lists:sort(All)]).
		accept(L) ->
			{ok, S} = gen_tcp:accept(L),
			P = spawn(fun() -> receive go -> echo(S) end end),
			ok = gen_tcp:controlling_process(S, P),
			P ! go,
			accept(L).
		echo(S) ->
			receive
				{tcp, S, D} -> ok = gen_tcp:send(S, D), inet:setopts(S, [{active, once}]), echo(S);
				{tcp_closed, S} -> ok
			end.
		talk(N) ->
			{ok, S} = gen_tcp:connect("10.78.0.1", 7040, [binary, {active, false}, {packet, line}]),
			R = [begin gen_tcp:send(S, io_lib:format("~p ~p~n", [N, I])), {ok, D} = gen_tcp:recv(S, 0, 10000), D end
				|| I <- lists:seq(1, 20)],
			gen_tcp:close(S),
			{N, erlang:phash2(R)}.
	ERL
	sed -i '1i #!/usr/bin/env escript' "$work/echo.erl"
	serve escript "$work/echo.erl" serve
	await_port 7040
	ask escript "$work/echo.erl" ask
}
program_zmq() {
	cat >"$work/messages.py" <<-'PY'
		import sys, zmq
		context = zmq.Context()
		if sys.argv[1] == "serve":
		    router, publisher = context.socket(zmq.ROUTER), context.socket(zmq.PUB)
		    router.bind("tcp://10.78.0.1:5555")
		    publisher.bind("tcp://10.78.0.1:5556")
		    while True:
		        who, _, what = router.recv_multipart()
		        publisher.send(b"news " + what[:10])
		        router.send_multipart([who, b"", what.upper()])
		request, news = context.socket(zmq.REQ), context.socket(zmq.SUB)
		request.connect("tcp://10.78.0.1:5555")
		news.connect("tcp://10.78.0.1:5556")
		news.subscribe(b"news")
		heard = 0
		for i in range(300):
		    request.send(b"word %d " % i * (1 + i * 10))
		    if request.recv() != b"WORD %d " % i * (1 + i * 10):
		        print("wrong answer", i)
		    while i > 100 and news.poll(5000 if heard < 100 else 0):
		        news.recv()
		        heard += 1
		print("heard", heard >= 100)
	PY
	serve /usr/bin/python3 "$work/messages.py" serve
	await_port 5555
	ask /usr/bin/python3 "$work/messages.py" ask
	echo "status $?"
}
program_slapd() {
	rm -rf "$work/ldap" && mkdir "$work/ldap"
	cat >"$work/slapd.conf" <<-CONF
		include /etc/ldap/schema/core.schema
		modulepath /usr/lib/ldap
		moduleload back_mdb
		pidfile $work/log/slapd.pid
		database mdb
		suffix dc=test
		rootdn cn=admin,dc=test
		rootpw secret
		directory $work/ldap
	CONF
	serve slapd -d 0 -h ldap://10.78.0.1:3890 -f "$work/slapd.conf"
	await_port 3890
	{
		printf 'dn: dc=test\nobjectClass: dcObject\nobjectClass: organization\no: test\n'
		for i in $(seq $((100 * times))); do
			printf '\ndn: cn=n%d,dc=test\nobjectClass: person\ncn: n%d\nsn: n%d\n' $i $i $i
		done
	} >"$work/test.ldif"
	ask ldapadd -x -H ldap://10.78.0.1:3890 -D cn=admin,dc=test -w secret -f "$work/test.ldif" | grep -c adding
	ask ldapsearch -x -H ldap://10.78.0.1:3890 -b dc=test -LLL '(sn=n*)' cn | md5sum
	ask ldapsearch -x -H ldap://10.78.0.1:3890 -b dc=missing -LLL 2>&1
	echo "status $?"
}
program_snmpd() {
	cat >"$work/snmpd.conf" <<-CONF
		agentaddress udp:10.78.0.1:1610,tcp:10.78.0.1:1610
		rocommunity public
		sysLocation here
		sysContact nobody
	CONF
	serve env SNMP_PERSISTENT_DIR="$work/log" snmpd -f -C -c "$work/snmpd.conf" -Lf "$work/log/snmpd.log" -u nobody
	await_port 1610
	for i in udp tcp; do
		ask snmpget -v2c -c public -Ov $i:10.78.0.1:1610 1.3.6.1.2.1.1.6.0 1.3.6.1.2.1.1.4.0
		ask snmpbulkwalk -v2c -c public -On $i:10.78.0.1:1610 1.3.6.1.2.1.1.9.1.3 | md5sum
	done
	ask snmpget -v2c -c wrong -r 0 -t 1 10.78.0.1:1610 1.3.6.1.2.1.1.6.0 2>&1
	echo "status $?"
}
program_rsyslog() {
	cat >"$work/rsyslog.conf" <<-CONF
		global(workDirectory="$work/log")
		module(load="imudp") module(load="imtcp")
		input(type="imudp" address="10.78.0.1" port="5140")
		input(type="imtcp" address="10.78.0.1" port="5140")
		template(name="plain" type="string" string="%msg%\n")
		*.* action(type="omfile" file="$work/log/messages" template="plain")
	CONF
	rm -f "$work/log/messages"
	serve rsyslogd -n -i NONE -f "$work/rsyslog.conf"
	await_port 5140
	seq $((200 * times)) | sed 's/^/tcp /' | ask logger -T -n 10.78.0.1 -P 5140 -t t --rfc3164
	seq 200 | sed 's/^/udp /' | ask logger -d -n 10.78.0.1 -P 5140 -t t --rfc3164
	wait_until has_lines "$work/log/messages" $((200 * times + 200))
	sort "$work/log/messages" | grep -E 'tcp|udp' | md5sum
}
has_lines() {
	[ "$(grep -cE 'tcp|udp' "$1")" = "$2" ]
}
program_turnserver() {
	serve turnserver -n -L 10.78.0.1 -p 3478 -a -u name:word -r test --no-tls --no-dtls --no-cli \
		--pidfile "$work/log/turn.pid" --log-file "$work/log/turn.log" --allow-loopback-peers \
		--userdb "$work/log/turndb" -E 10.78.0.1
	await_port 3478
	ask turnutils_uclient -u name -w word -y -n 50 -m 4 10.78.0.1 | grep -oE 'Total lost packets [0-9]+|tot_recv_msgs=[0-9]+' | tail -2
	ask turnutils_uclient -t -u name -w word -y -n 50 -m 4 10.78.0.1 | grep -oE 'Total lost packets [0-9]+|tot_recv_msgs=[0-9]+' | tail -2
	ask turnutils_stunclient 10.78.0.1 | grep -c 'UDP reflexive'
}
sipp_calls() {
	serve sipp -sn uas -max_socket 1000 -i 10.78.0.1 -p 5060 -t "$1" -nostdin -trace_err -error_file "$work/log/uas"
	"$2" 5060
	ask sipp -sn uac -max_socket 1000 -i 10.78.0.2 -p 5061 -t "$1" 10.78.0.1:5060 -m $((100 * times)) -r 200 -d 10 -nostdin >"$work/calls"
	echo "status $?"
	grep -E 'Successful call|Failed call' "$work/calls" | tail -2 | awk '{ print $1, $NF }'
}
program_sipp() {
	sipp_calls u1 await_udp
	kill "${servers[-1]}"; wait "${servers[-1]}"; echo "ended $?"
	sipp_calls tn await_port
}
program_webrick() {
	cat >"$work/serve.rb" <<-'RB'
		require "socket"
		server = TCPServer.new("10.78.0.1", 7050)
		trap("TERM") { exit 3 }
		loop do
			Thread.new(server.accept) do |s|
				while (line = s.gets)
					s.write(line.upcase)
				end
				s.close
			end
		end
	RB
	cat >"$work/ask.rb" <<-'RB'
		require "socket"
		answers = 20.times.map { |n| Thread.new {
			s = TCPSocket.new("10.78.0.1", 7050)
			all = 20.times.map { |i| s.puts("line #{n} #{i}"); s.gets }
			s.write("x" * 500000 + "\n"); all << s.gets.size
			s.close_write; all << s.read; s.close
			all.join } }.map(&:value)
		puts answers.join.sum
		begin
			TCPSocket.new("10.78.0.1", 7051)
		rescue => e
			puts e.message
		end
	RB
	serve ruby "$work/serve.rb"
	await_port 7050
	ask ruby "$work/ask.rb"
	echo "status $?"
	kill "${servers[-1]}"; wait "${servers[-1]}"; echo "ended $?"
}
program_dovecot() {
	cat >"$work/dovecot.conf" <<-CONF
		base_dir = $work/log/dovecot
		state_dir = $work/log/dovecot
		log_path = $work/log/dovecot.log
		protocols = imap
		listen = 10.78.0.1
		ssl = no
		disable_plaintext_auth = no
		mail_location = maildir:$work/log/mail
		first_valid_uid = 1
		default_internal_user = nobody
		default_internal_group = nogroup
		default_login_user = daemon
		passdb {
		  driver = static
		  args = password=word
		}
		userdb {
		  driver = static
		  args = uid=bin gid=bin home=$work/log/mail
		}
		service imap-login {
		  inet_listener imap {
		    port = 1430
		  }
		  inet_listener imaps {
		    port = 0
		  }
		}
	CONF
	rm -rf "$work/log/mail"
	serve dovecot -F -c "$work/dovecot.conf"
	await_port 1430
	cat >"$work/imap.py" <<-'PY'
		import imaplib, sys
		for i in range(10):
		    m = imaplib.IMAP4("10.78.0.1", 1430)
		    print(m.login("user", "word")[0], m.select()[0])
		    print(m.append("INBOX", None, None, b"Subject: %d\r\n\r\n" % i + b"text\r\n" * 5000)[0])
		    print(m.search(None, "ALL"), len(m.fetch(str(i + 1), "(RFC822)")[1][0][1]))
		    m.logout()
	PY
	ask /usr/bin/python3 "$work/imap.py"
	echo "status $?"
}
program_exim() {
	cat >"$work/exim.conf" <<-CONF
		primary_hostname = test
		spool_directory = $work/log/exim
		log_file_path = $work/log/exim-%slog
		daemon_smtp_ports = 2525
		local_interfaces = 10.78.0.1
		acl_smtp_rcpt = accept
		exim_user = mail
		exim_group = mail
		queue_only = yes
		begin routers
		all:
		  driver = accept
		  transport = file
		begin transports
		file:
		  driver = appendfile
		  file = $work/log/mbox
		  user = mail
	CONF
	serve exim4 -bdf -C "$work/exim.conf"
	await_port 2525
	cat >"$work/mail.py" <<-'PY'
		import smtplib
		for i in range(10):
		    s = smtplib.SMTP("10.78.0.1", 2525)
		    print(s.sendmail("a@test", ["b@test"], "Subject: x\r\n\r\n" + "text\r\n" * 5000))
		    print(s.docmd("VRFY x")[0], s.quit()[0])
	PY
	ask /usr/bin/python3 "$work/mail.py"
	echo "status $?"
	ls "$work/log/exim/input" | wc -l
	rm -rf "$work/log/exim"
}

run_programs
